#!/bin/sh
# The wide tables, the most telling first: run it in a checkout of its own, in the background, with GROTTA_DATA set.
#
#     sh scripts/wide_tables.sh runs/wide && python scripts/result_tables.py runs/wide
#
# Stop it at any time and start it again: finished cells are kept, the one that ran is resumed, and cells whose method,
# weights or pictures have changed since are run again. SIZE is the number of images of each domain, 0 for all.
set -eu
out=${1:?"usage: sh scripts/wide_tables.sh OUT"}
size=${SIZE:-2000}
weights=${WEIGHTS:-weights}
grotta=${GROTTA:-grotta}

table() { $grotta bench --full --images "$size" --workers 1 --out "$out" "$@"; }

cifar10="--dataset cifar10-c --model resnet20@$weights/resnet20-12fca82f.th"
large="--dataset cifar10-c --model resnet56@$weights/resnet56-4bfd9763.th"
cifar100="--dataset cifar100-c --model resnet56_proj@$weights/cifar100_resnet56-f2eff4c8.pt"
imagenet="--dataset imagenet-c --model mobilenet_v2@$weights/mobilenet_v2-b0353104.pth"
both="--gammas 1e-1,1e-4"

table $cifar10 $both --seeds 3 --methods source,lame,rotta,grotta+
table $cifar10 $both --seeds 3 --methods grotta --preset fast
table $cifar10 $both --seeds 3 --methods note
table $cifar10 --methods grotta+
table $cifar100 $both --methods source,bn,lame,rotta,grotta+
table $cifar100 $both --methods grotta --preset fast
table $imagenet --gammas 1e-1 --methods source,bn,lame,grotta+
table $imagenet --gammas 1e-1 --methods grotta --preset fast
table $large --gammas 1e-1 --methods source,lame,rotta,grotta+
table $large --gammas 1e-1 --methods grotta --preset fast
table $cifar10 $both --methods bn,pl,tent,ods,eata,rdumb,sar,deyo,roid,tribe,petta
table $cifar10 --gammas 1e-1 --methods cotta

#!/bin/sh
# The wide tables, the most telling first: run it in a checkout of its own, in the background, with GROTTA_DATA set.
#
#     sh scripts/wide_tables.sh runs && python scripts/result_tables.py runs/wide runs/matrix
#
# Stop it at any time and start it again: finished cells are kept, the one that ran is resumed, and cells whose method,
# weights or pictures have changed since are run again. SIZE is the number of images of each domain, 0 for all; weights
# are looked for in weights/ of the data root, networks for PACS are trained into models/ there.
set -eu
out=${1:?"usage: sh scripts/wide_tables.sh OUT"}
size=${SIZE:-2000}
root=${GROTTA_DATA:?"GROTTA_DATA must name the data root"}
grotta=${GROTTA:-grotta}

table() { $grotta bench --images "$size" --workers 1 --out "$out/wide" "$@"; }

cifar10="--full --dataset cifar10-c --model resnet20@weights/resnet20-12fca82f.th"
large="--full --dataset cifar10-c --model resnet56@weights/resnet56-4bfd9763.th"
cifar100="--full --dataset cifar100-c --model resnet56_proj@weights/cifar100_resnet56-f2eff4c8.pt"
imagenet="--full --dataset imagenet-c --model mobilenet_v2@weights/mobilenet_v2-b0353104.pth --images 0 --gammas 1e-1"
resnet50="--domains motion_blur,snow,fog,contrast,jpeg_compression --dataset imagenet-c --images 0 --gammas 1e-1"
resnet50="$resnet50 --model resnet50_keras@weights/resnet50-keras/model.json"
both="--gammas 1e-1,1e-4"

pacs() {
    $grotta reproduce table-main --dataset pacs --model "mobilenet_v2@models/pacs-{source}/mobilenet_v2.safetensors" \
        --image-size 128 --images 1000 --workers 1 --out "$out/wide" "$@"
}

train() {
    [ -e "$root/models/pacs-$1/mobilenet_v2.safetensors" ] ||
        $grotta train pacs --domain "$1" --model mobilenet_v2 --weights "$root/weights/mobilenet_v2-b0353104.pth" \
            --image-size 128 --lr 0.01 --epochs 4 --batch-size 32 --out "$root/models/pacs-$1"
}

table $cifar10 $both --seeds 3 --methods source,lame,rotta,grotta+
table $cifar10 $both --seeds 3 --methods grotta --preset fast
table $cifar10 $both --seeds 3 --methods note
table $cifar10 --gammas 1e-1,1e-2,1e-3,1e-4 --methods grotta+
$grotta reproduce matrix --full --workers 1 --out "$out/matrix" \
    --methods "source,bn,tent,lame,rotta,note,grotta fast,grotta+"
table $cifar100 $both --methods source,bn,lame,rotta,grotta+
table $cifar100 $both --methods grotta --preset fast
table $imagenet --methods source,bn,tent,lame,rotta,grotta+
table $imagenet --methods grotta --preset fast
for source in photo art_painting cartoon sketch; do train $source; done
pacs --gammas 1e-1,1e-2,1e-3,1e-4 --methods source,bn,tent,lame,note,rotta,grotta+
pacs --gammas 1e-1,1e-2,1e-3,1e-4 --methods grotta --preset fast
table $large --gammas 1e-1 --methods source,lame,rotta,grotta+
table $large --gammas 1e-1 --methods grotta --preset fast
table $cifar10 $both --methods bn,pl,tent,ods,eata,rdumb,sar,deyo,roid,tribe,petta
table $resnet50 --methods source,bn,lame,grotta+
table $resnet50 --methods grotta --preset fast
table $cifar10 --gammas 1e-1 --methods cotta

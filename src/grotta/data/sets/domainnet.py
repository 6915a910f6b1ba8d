"""DomainNet: 345 classes in six styles; its page gives no checksums, so these are TensorFlow Datasets' sha256 sums."""

from pathlib import Path

from grotta.data.download import Remote
from grotta.data.fetch import fetch_archives, fetch_files
from grotta.data.folders import FolderSet, folder_entry

DOMAINNET = FolderSet(
    name="domainnet",
    places=("DomainNet", "domainnet", "domain_net"),
    domains=("clipart", "infograph", "painting", "quickdraw", "real", "sketch"),
)

_BU = "http://csr.bu.edu/ftp/visda/2019/multi-source"
_BU_LISTS = f"{_BU}/domainnet/txt"
# fmt: off
ARCHIVES = tuple(Remote(f"{_BU}/{path}", "sha256", checksum, size) for path, checksum, size in (
    ("groundtruth/clipart.zip", "f8f248a3e8bbc9868c523ae24e6601b4c2ad102afc60c0efeb4f3255df22354d", 1_270_909_081),
    ("infograph.zip", "891e14f476317e97b6f06d6498c11d0a5b8d0c8b57210765ed9beb072da611fa", 4_338_659_804),
    ("groundtruth/painting.zip", "fa47e6d405503ea0286cabd767f176bd30e988b63ddd7b9db16cf030c9770015", 3_679_366_174),
    ("quickdraw.zip", "9f37df2a8c3733703dbb35ad9964202a65f675ca30137756457537536b485d84", 459_920_701),
    ("real.zip", "d7fe010b430c5b510f85d657d38c4a1924822695fabea4fef57bd00dba251d63", 6_062_039_589),
    ("sketch.zip", "23a7dbae7016b343e934399beaa8a68728fb5e570ebe2c71df9b75cf91c499fc", 2_633_992_926),
))
LISTS = tuple(Remote(f"{_BU_LISTS}/{name}.txt", "sha256", checksum, size) for name, checksum, size in (
    ("clipart_test", "62c8e36aaba1c41ad9e249099739707220a44c08f167b37ef420f34a31628a6b", 628_917),
    ("clipart_train", "affdadf5f95a7583e6b98030a3d35007e2613ee4dd942393c5a705ec2b429312", 1_443_819),
    ("infograph_test", "413cfa54ac92e7e6b242f4f09fbd9c8ace85c4deaf3cb6c81ff6b68264460136", 728_028),
    ("infograph_train", "36b44cbd41a2915e0dc73b4f4be8862a6f3c220f93c8d63fb2439beeae3aefda", 1_683_098),
    ("painting_test", "11472b13b5188e09f06918b12eebb660588c97a20e43e268d9b02e3e37eb8f97", 971_888),
    ("painting_train", "f1da38d50a702fddf1329f85bc607d7a2abcae7e6aec75e1fd49cc1bd340d47b", 2_241_901),
    ("quickdraw_test", "2a00a60650a453c65c356da748fec54084a197272137c440e7d52d08947357bf", 2_213_400),
    ("quickdraw_train", "3a5edd3bc215772010eebc87f158707703dd7e48091d13b816af81326a9d1c0f", 5_164_600),
    ("real_test", "2b3f75bcde309aeb5931292084b2162e936b5f189e3bb1ad716f0f74c460864c", 1_911_327),
    ("real_train", "19d483256d24aef19e581b65eda8333fd918aef3eb733fe499ff384120e3a289", 4_440_944),
    ("sketch_test", "3fb48fca18c507c4321f007c3f62b308ec232ff6928cbfe2af64e76ec366e840", 850_581),
    ("sketch_train", "72f4bc6afa5702a1ccba800d0053c1427de87439dfaf246dbc9a2e71abfec54f", 1_960_222),
))
# fmt: on


def get(root: Path) -> None:
    """Download the lists and the pictures."""
    fetch_files(LISTS, "DomainNet", root)
    fetch_archives(ARCHIVES, "DomainNet", root)


ENTRY = folder_entry(DOMAINNET, title="DomainNet, 6 domains, 345 classes", get=get, size="18.5 GB", by_hand=False)

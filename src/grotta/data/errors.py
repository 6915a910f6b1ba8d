"""What can go wrong with data on a disk or on the way to it."""


class DataNotFoundError(FileNotFoundError):
    """A data set is in none of the places it was looked for; the message names them and how to get it."""


class DamagedDataError(ValueError):
    """A file is there but is not what it should be: cut short, of another shape, or with another checksum."""


class DownloadError(OSError):
    """A download failed; the message says of what, why, and whether the next try goes on from there."""

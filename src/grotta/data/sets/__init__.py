"""The data sets, one file each: where it is looked for, how it is fetched and opened, and its entry."""

"""One safe reader for each kind of file: archives of arrays, tables, JSON and TOML.

What a file declares (sizes, types, names) is checked before anything of that size is read, only what is asked for is
read, nothing is unpickled, and whatever is wrong is a `DataError` of one line. Zarr stores are opened by
`shadow.array_group`, Python 2 pickles of Planetoid by `datasets.safe_pickle`.
"""

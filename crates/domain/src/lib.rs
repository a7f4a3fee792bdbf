//! Every rule of Fuse, free of I/O.

module fuse/fixtures

go 1.25.0

require github.com/choria-io/fisk v0.9.1

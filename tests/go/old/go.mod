module fuse/fixtures/old

go 1.22.0

require github.com/choria-io/fisk v0.6.4

module kumodo.io/convoy/hack/images

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/opencontainers/go-digest v1.0.0
	github.com/opencontainers/image-spec v1.1.1
	golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
	oras.land/oras-go/v2 v2.7.0
)

require golang.org/x/sync v0.24.0 // indirect

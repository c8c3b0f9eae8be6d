// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
)

const ociScheme = "oci"

// RenderStore says which registry keeps the renders. Without a URL they are in the
// data directory.
type RenderStore struct {
	// URL: oci://host/path, or empty.
	URL string
	// DockerConfig is a file with credentials, CAFile one with certificates to trust.
	DockerConfig, CAFile string
	// PlainHTTP is for a registry without TLS.
	PlainHTTP bool
}

func (r *RenderStore) addFlags(f *pflag.FlagSet) {
	f.StringVar(&r.URL, "render-store-url", r.URL, "Keep renders in an OCI registry, at oci://HOST/PATH, in place of --data-dir. Any client of registries lists and pulls them there.")
	f.StringVar(&r.DockerConfig, "render-store-docker-config", r.DockerConfig, "File with the credentials for that registry, as docker's config.json. It is read again when it is needed. Programs that it names are not run.")
	f.StringVar(&r.CAFile, "render-store-ca-file", r.CAFile, "File with certificates to trust for that registry besides the system's, PEM.")
	f.BoolVar(&r.PlainHTTP, "render-store-plain-http", r.PlainHTTP, "Speak http to that registry.")
}

func (r *RenderStore) validate() []error {
	if r.URL == "" {
		if r.DockerConfig != "" || r.CAFile != "" || r.PlainHTTP {
			return []error{fmt.Errorf("--render-store-docker-config, --render-store-ca-file and --render-store-plain-http: %w: they go with --render-store-url", ErrInvalid)}
		}
		return nil
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != ociScheme || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.User != nil || u.RawQuery != "" {
		// The error of net/url would repeat a password.
		return []error{fmt.Errorf("--render-store-url: %w: it is written oci://HOST/PATH", ErrInvalid)}
	}
	return nil
}

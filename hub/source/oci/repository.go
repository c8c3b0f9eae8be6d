// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
)

// Repository is one repository of a registry. Close it.
type Repository struct {
	remote *remote.Repository
	client *endpoint.Client
	host   string
	sent   bool // credentials are at hand
}

// Open connects to the repository that a remote's URL names.
func Open(ctx context.Context, r endpoint.Remote) (*Repository, error) {
	u, err := endpoint.ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != endpoint.SchemeOCI {
		return nil, fault.Failf(fault.ClassInvalid, "the URL of a registry is written oci://HOST/PATH")
	}
	reference := registry.Reference{Registry: strings.ToLower(u.Host), Repository: strings.Trim(u.Path, "/")}
	if err := errors.Join(reference.ValidateRegistry(), reference.ValidateRepository()); err != nil {
		return nil, fault.Failf(fault.ClassInvalid, "the URL needs the path of a repository: small letters, digits, and . _ - / between them")
	}
	client, err := r.Connect()
	if err != nil {
		return nil, err
	}
	own := reference.Host()
	credentials, err := r.RegistryAuth(true, own, reference.Repository)
	if err != nil {
		return nil, err
	}
	repository := &Repository{client: client, host: reference.Registry, sent: !credentials.None()}
	repository.remote = &remote.Repository{
		Reference:        reference,
		MaxMetadataBytes: MaxManifestBytes, TagListPageSize: tagPage, TagListMaxPages: maxPages, ReferrerListMaxPages: maxPages,
		Client: &auth.Client{
			Client: client.HTTP,
			Cache:  auth.NewCache(),
			Credential: func(_ context.Context, host string) (auth.Credential, error) {
				if !strings.EqualFold(host, own) {
					return auth.EmptyCredential, nil
				}
				return auth.Credential{
					Username: credentials.Username, Password: credentials.Password,
					RefreshToken: credentials.IdentityToken, AccessToken: credentials.RegistryToken,
				}, nil
			},
			// The dialler has its own policy, for token services as for all.
			BlockedRealmPrefixes: []netip.Prefix{},
		},
	}
	if len(r.Policy.Allow) > 0 {
		if repository.remote.PlainHTTP, err = repository.speaksHTTP(ctx, own); err != nil {
			client.Close()
			return nil, err
		}
	}
	return repository, nil
}

// speaksHTTP asks whether a registry has no TLS. Only where ranges are opened is
// that a question, and the dialler lets http go to nowhere else.
func (r *Repository) speaksHTTP(ctx context.Context, host string) (bool, error) {
	target := url.URL{Scheme: endpoint.SchemeHTTPS, Host: host, Path: "/v2/"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return false, fault.Failf(fault.ClassInvalid, "the URL cannot be used")
	}
	response, err := r.client.HTTP.Do(request)
	// Some servers answer the handshake as if it were http, others with anything else
	// that is no handshake.
	var noTLS tls.RecordHeaderError
	if errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &noTLS) {
		return true, nil
	}
	if err != nil {
		return false, r.explain(ctx, "", err)
	}
	return false, response.Body.Close()
}

// Ping asks whether the registry that a remote's URL names answers, and takes the
// credentials. Whether there is such a repository is not asked: the URL may be that
// of a folder of repositories. Without credentials a registry that wants some is
// there: what is public in it can be had all the same.
func Ping(ctx context.Context, r endpoint.Remote) error {
	u, err := endpoint.ParseURL(r.URL)
	if err != nil {
		return err
	}
	if strings.Trim(u.Path, "/") == "" { // a whole registry
		u.Path = "/" + pingRepository
	}
	r.URL = u.String()
	repository, err := Open(ctx, r)
	if err != nil {
		return err
	}
	defer repository.Close()
	whole := &remote.Registry{RepositoryOptions: remote.RepositoryOptions{
		Reference: registry.Reference{Registry: repository.remote.Reference.Registry},
		Client:    repository.remote.Client, PlainHTTP: repository.remote.PlainHTTP,
	}}
	if err := whole.Ping(ctx); err != nil {
		err = repository.explain(ctx, "", err)
		if !repository.sent && fault.ClassOf(err) == fault.ClassAuth {
			return nil
		}
		return err
	}
	return nil
}

// pingRepository is a name for where none is needed.
const pingRepository = "ping"

// Close lets the connections go.
func (r *Repository) Close() { r.client.Close() }

// Name of the repository, for messages.
func (r *Repository) Name() string {
	return r.remote.Reference.Registry + "/" + r.remote.Reference.Repository
}

// Resolve gives the manifest that a tag or a digest names.
func (r *Repository) Resolve(ctx context.Context, reference string) (ocispec.Descriptor, error) {
	found, err := r.remote.Resolve(ctx, reference)
	if err != nil {
		return ocispec.Descriptor{}, r.explain(ctx, reference, err)
	}
	return found, nil
}

// Manifest reads one whose bytes are those of its digest.
func (r *Repository) Manifest(ctx context.Context, reference string) (found ocispec.Descriptor, text []byte, err error) {
	found, body, err := r.remote.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return found, nil, r.explain(ctx, reference, err)
	}
	defer body.Close()
	if found.Size > MaxManifestBytes {
		return found, nil, fault.Failf(fault.ClassTooLarge, "the manifest %s of %s has more than %d KiB", reference, r.Name(), MaxManifestBytes>>10)
	}
	text, err = content.ReadAll(body, found)
	if err != nil {
		return found, nil, r.explain(ctx, reference, err)
	}
	return found, text, nil
}

// Blob reads a small one, of at most limit bytes, that are those of its digest.
func (r *Repository) Blob(ctx context.Context, blob ocispec.Descriptor, limit int64) ([]byte, error) {
	if blob.Size < 0 || blob.Size > limit {
		return nil, fault.Failf(fault.ClassTooLarge, "%s in %s has more than %d KiB", blob.Digest, r.Name(), limit>>10)
	}
	body, err := r.remote.Blobs().Fetch(ctx, blob)
	if err != nil {
		return nil, r.explain(ctx, blob.Digest.String(), err)
	}
	defer body.Close()
	text, err := content.ReadAll(body, blob)
	if err != nil {
		return nil, r.explain(ctx, blob.Digest.String(), err)
	}
	return text, nil
}

// Tags gives all tags, some at a time.
func (r *Repository) Tags(ctx context.Context, each func(tag string)) error {
	count := 0
	err := r.remote.Tags(ctx, "", func(tags []string) error {
		if count += len(tags); count > maxTags {
			return fault.Failf(fault.ClassTooLarge, "%s has more than %d tags", r.Name(), maxTags)
		}
		for _, tag := range tags {
			each(tag)
		}
		return nil
	})
	if err != nil {
		return r.explain(ctx, "", err)
	}
	return nil
}

// Referrers gives what says of itself that it is about a manifest.
func (r *Repository) Referrers(ctx context.Context, subject ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	var all []ocispec.Descriptor
	err := r.remote.Referrers(ctx, subject, artifactType, func(some []ocispec.Descriptor) error {
		if all = append(all, some...); len(all) > maxReferrers {
			return fault.Failf(fault.ClassTooLarge, "%s has more than %d referrers", subject.Digest, maxReferrers)
		}
		return nil
	})
	if err != nil {
		return nil, r.explain(ctx, subject.Digest.String(), err)
	}
	return all, nil
}

// explain sorts an error of the library. reference is what was asked for.
func (r *Repository) explain(ctx context.Context, reference string, err error) error {
	var (
		own    *fault.Error
		answer *errcode.ErrorResponse
	)
	what := r.Name()
	if reference != "" {
		what += " " + reference
	}
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fault.Failf(fault.ClassAuth, "%s wants credentials and none are at hand for it", r.host)
	case errors.As(err, &answer):
		return r.answered(what, answer)
	case errors.Is(err, errdef.ErrNotFound):
		return fault.Failf(fault.ClassNotFound, "%s does not exist", what)
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return fault.Failf(fault.ClassTooLarge, "%s: the registry's answer has more than %d KiB", what, MaxManifestBytes>>10)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return fault.Failf(fault.ClassInvalid, "%s: the registry's answer is not what its digest says", what)
	default:
		return fault.Dial(ctx, r.host, err)
	}
}

// answered says what a status means.
func (r *Repository) answered(what string, answer *errcode.ErrorResponse) error {
	said := ""
	if len(answer.Errors) > 0 {
		said = ": " + fault.Clean(answer.Errors[0].Error())
	}
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		return fault.Failf(fault.ClassNotFound, "%s does not exist%s", what, said)
	case code != http.StatusUnauthorized && code != http.StatusForbidden:
		return fault.Failf(fault.ClassUnreachable, "%s answers with status %d%s", answer.URL.Host, code, said)
	case !r.sent:
		return fault.Failf(fault.ClassAuth, "%s wants credentials for %s (%d) and none are at hand for it%s", answer.URL.Host, what, code, said)
	default:
		return fault.Failf(fault.ClassAuth, "%s does not accept the credentials for %s (%d): wrong, expired, or without the right to read%s", answer.URL.Host, what, code, said)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package image looks up the digests of container images, for releases that pin
// them: a part of the first step of the flow source -> render -> store -> deliver ->
// apply -> observe -> report.
package image

import (
	"context"
	"strings"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/oci"
)

// What a short name stands for.
const (
	defaultRegistry  = "docker.io"
	defaultNamespace = "library"
	defaultTag       = "latest"
	// maxReferenceBytes of an image's reference.
	maxReferenceBytes = 1024
)

// Reference is an image's name in full.
type Reference struct {
	Registry, Repository string
	// Tag, or Digest; a reference with both is that of the digest.
	Tag, Digest string
}

// Parse reads a reference as container runtimes do: nginx is
// docker.io/library/nginx:latest, and what is before the first slash is a registry if
// it has a dot or a colon, or is localhost.
func Parse(text string) (Reference, error) {
	refuse := func() (Reference, error) {
		return Reference{}, fault.Failf(fault.ClassInvalid, "%q is no reference of an image", fault.Clean(text))
	}
	if len(text) > maxReferenceBytes || strings.ContainsAny(text, " \t\r\n?#%") || strings.Contains(text, "://") {
		return refuse()
	}
	var ref Reference
	name, digest, pinned := strings.Cut(text, "@")
	if ref.Digest = digest; pinned && !oci.IsDigest(digest) {
		return refuse()
	}
	slash := strings.LastIndexByte(name, '/')
	if colon := strings.LastIndexByte(name, ':'); colon > slash {
		if ref.Tag = name[colon+1:]; ref.Tag == "" {
			return refuse()
		}
		name = name[:colon]
	}
	first, rest, deeper := strings.Cut(name, "/")
	switch {
	case deeper && (strings.ContainsAny(first, ".:") || first == "localhost"):
		ref.Registry, ref.Repository = first, rest
	default:
		ref.Registry, ref.Repository = defaultRegistry, name
	}
	if ref.Registry == "index.docker.io" {
		ref.Registry = defaultRegistry
	}
	if ref.Registry == defaultRegistry && !strings.Contains(ref.Repository, "/") {
		ref.Repository = defaultNamespace + "/" + ref.Repository
	}
	if ref.Tag == "" && !pinned {
		ref.Tag = defaultTag
	}
	if ref.Repository == "" || strings.HasSuffix(ref.Repository, "/") || ref.Repository != strings.ToLower(ref.Repository) {
		return refuse()
	}
	return ref, nil
}

// Resolve gives the digest, sha256:<hex>, that an image's tag leads to now; that of
// an index stays one of an index, so that each cluster takes its own platform of it.
//
// The first of the remotes that has something for the registry gives the credentials
// and the CA: a docker configuration that names it, or a URL at the same host with a
// user name and password. Without one the image is asked for as anybody could. Only
// the given policy of addresses counts.
func Resolve(ctx context.Context, policy address.Policy, remotes []endpoint.Remote, reference string) (digest string, err error) {
	ref, err := Parse(reference)
	if err != nil {
		return "", err
	}
	if ref.Digest != "" {
		return ref.Digest, nil
	}
	remote := endpoint.Remote{Policy: policy}
	for _, candidate := range remotes {
		found, ok, err := candidate.For(ref.Registry, ref.Repository)
		if err != nil {
			return "", err
		}
		if ok {
			remote.Auth, remote.CA = found.Auth, found.CA
			break
		}
	}
	remote.URL = endpoint.SchemeOCI + "://" + ref.Registry + "/" + ref.Repository
	resolved, err := oci.Resolve(ctx, remote, oci.Ref{Tag: ref.Tag})
	return resolved.Digest, err
}

// SPDX-License-Identifier: Apache-2.0

package helmrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/oci"
)

const (
	indexName    = "index.yaml"
	digestPrefix = "sha256:"
	// nobody is the name of no chart: with it a scan only checks the form.
	nobody = ""
)

// Resolve looks a version up: an exact version, a semver range, empty for the
// highest that is no pre-release, or sha256:<hex>.
func Resolve(ctx context.Context, remote endpoint.Remote, chart, version string) (Resolved, error) {
	if err := checkName(chart); err != nil {
		return Resolved{}, err
	}
	u, err := endpoint.ParseURL(remote.URL)
	if err != nil {
		return Resolved{}, err
	}
	if u.Scheme == endpoint.SchemeOCI {
		return resolveOCI(ctx, remote, chart, version)
	}
	client, err := remote.Connect()
	if err != nil {
		return Resolved{}, err
	}
	defer client.Close()
	index, err := openIndex(ctx, client)
	if err != nil {
		return Resolved{}, err
	}
	defer index.Close()
	return Find(index, u, chart, version)
}

// checkName refuses names that cannot stand in a URL or in a path.
func checkName(chart string) error {
	if chart == "" || len(chart) > maxNameBytes || strings.HasPrefix(chart, "/") || strings.HasSuffix(chart, "/") ||
		strings.Contains(chart, "..") || strings.ContainsAny(chart, "\\:@?#% \x00\n\r\t\"'") {
		return fault.Failf(fault.ClassInvalid, "%q is no name of a chart", fault.Clean(chart))
	}
	return nil
}

// index is the body of an answer, bounded.
type index struct {
	endpoint.Limited
	io.Closer
}

func openIndex(ctx context.Context, client *endpoint.Client) (*index, error) {
	target := client.URL().JoinPath(indexName)
	response, err := client.Get(ctx, target, false)
	if err != nil {
		return nil, err
	}
	return &index{Closer: response.Body, Limited: endpoint.Limited{
		R: response.Body, Limit: MaxIndexBytes, What: "the index " + fault.Clean(target.String()),
		Sort: func(err error) error { return fault.Dial(ctx, client.Host(), err) },
	}}, nil
}

// Find looks a version up in an index. base is the URL of the repository, which
// relative URLs of the index begin at.
func Find(r io.Reader, base *url.URL, chart, version string) (Resolved, error) {
	choice, err := newChoice(version)
	if err != nil {
		return Resolved{}, err
	}
	var best *entry
	seen := 0
	isIndex, skipped, err := scan(r, chart, func(one entry) bool {
		if one.Name != "" && one.Name != chart {
			return true
		}
		seen++
		better, exact := choice.better(one)
		if better {
			best = &one
		}
		return !exact
	})
	switch {
	case err != nil:
		return Resolved{}, err
	case !isIndex:
		return Resolved{}, notAnIndex(base)
	case best == nil && seen == 0 && skipped != nil:
		return Resolved{}, fault.Failf(fault.ClassInvalid, "no version of %s can be read in the index: %s", fault.Clean(chart), fault.Clean(skipped.Error()))
	case best == nil && seen == 0:
		return Resolved{}, fault.Failf(fault.ClassNotFound, "the index of %s has no chart %s", base.Host, fault.Clean(chart))
	case best == nil:
		return Resolved{}, fault.Failf(fault.ClassNotFound, "the index of %s has %d versions of %s, none that is %s", base.Host, seen, fault.Clean(chart), choice.words)
	}
	return best.resolve(base, chart)
}

func notAnIndex(base *url.URL) error {
	return fault.Failf(fault.ClassInvalid, "%s answers, but not with an index of charts", base.Host)
}

// choice takes the version that is meant.
type choice struct {
	exact  string
	digest string
	words  string
	rest   *oci.Choice
}

func newChoice(version string) (*choice, error) {
	if digits, ok := strings.CutPrefix(version, digestPrefix); ok {
		if !oci.IsDigest(version) {
			return nil, fault.Failf(fault.ClassInvalid, "a digest is written sha256: and 64 hexadecimal digits in lower case")
		}
		return &choice{digest: digits, words: version}, nil
	}
	rest, err := oci.NewChoice(version)
	if err != nil {
		return nil, err
	}
	words := "in the range " + fault.Clean(version)
	if version == "" {
		words = "a version without being a pre-release"
	}
	return &choice{exact: version, words: words, rest: rest}, nil
}

// better says that an entry is taken, and whether no other can be better.
func (c *choice) better(one entry) (better, exact bool) {
	switch {
	case c.digest != "":
		same := strings.TrimPrefix(one.Digest, digestPrefix) == c.digest
		return same, same
	case c.exact != "" && one.Version == c.exact:
		return true, true
	}
	return c.rest.Better(one.Version), false
}

// resolve says where the archive is.
func (e *entry) resolve(base *url.URL, chart string) (Resolved, error) {
	resolved := Resolved{Chart: chart, Version: e.Version}
	if digits := strings.TrimPrefix(e.Digest, digestPrefix); digits != "" {
		if resolved.Digest = digestPrefix + strings.ToLower(digits); !oci.IsDigest(resolved.Digest) {
			return Resolved{}, fault.Failf(fault.ClassInvalid, "the index has no proper digest for %s %s", fault.Clean(chart), fault.Clean(e.Version))
		}
	}
	from := *base
	from.Path = strings.TrimSuffix(from.Path, "/") + "/"
	for _, text := range e.URLs {
		target, err := url.Parse(text)
		if err != nil {
			continue
		}
		target = from.ResolveReference(target)
		known := target.Scheme == endpoint.SchemeHTTPS || target.Scheme == endpoint.SchemeHTTP || target.Scheme == endpoint.SchemeOCI
		if known && target.Hostname() != "" && target.User == nil {
			target.Fragment = ""
			resolved.URL = target.String()
			return resolved, nil
		}
	}
	return Resolved{}, fault.Failf(fault.ClassInvalid, "the index has no URL for %s %s that can be used", fault.Clean(chart), fault.Clean(e.Version))
}

// resolveOCI looks a version up among the tags of the chart's own repository.
func resolveOCI(ctx context.Context, remote endpoint.Remote, chart, version string) (Resolved, error) {
	remote.URL = strings.TrimSuffix(remote.URL, "/") + "/" + chart
	ref := oci.Ref{Semver: version}
	switch _, err := semver.StrictNewVersion(version); {
	case strings.HasPrefix(version, digestPrefix):
		ref = oci.Ref{Digest: version}
	case err == nil: // one version: the tag has its name, with _ in place of +
		ref = oci.Ref{Tag: strings.ReplaceAll(version, "+", "_")}
	case version == "":
		ref.Semver = "*"
	}
	found, err := oci.Resolve(ctx, remote, ref)
	if err != nil {
		return Resolved{}, err
	}
	return Resolved{Chart: chart, Version: strings.ReplaceAll(found.Tag, "_", "+"), URL: remote.URL, Digest: found.Digest}, nil
}

// Check asks for the index and gives its digest; of an oci:// repository it only
// says whether the registry answers and takes the credentials, and the digest is
// empty.
func Check(ctx context.Context, remote endpoint.Remote) (digest string, err error) {
	u, err := endpoint.ParseURL(remote.URL)
	if err != nil {
		return "", err
	}
	if u.Scheme == endpoint.SchemeOCI {
		return "", oci.Ping(ctx, remote)
	}
	client, err := remote.Connect()
	if err != nil {
		return "", err
	}
	defer client.Close()
	index, err := openIndex(ctx, client)
	if err != nil {
		return "", err
	}
	defer index.Close()
	sum := sha256.New()
	isIndex, _, err := scan(io.TeeReader(index, sum), nobody, func(entry) bool { return true })
	if err == nil && !isIndex {
		err = notAnIndex(u)
	}
	if err == nil {
		_, err = io.Copy(sum, index)
	}
	if err != nil {
		return "", errors.Join(err)
	}
	return digestPrefix + hex.EncodeToString(sum.Sum(nil)), nil
}

// SPDX-License-Identifier: Apache-2.0

package helmrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"

	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/oci"
)

// Fetch writes a chart as a snapshot into dir: one folder named by the chart.
func Fetch(ctx context.Context, remote endpoint.Remote, resolved Resolved, dir string) (Fetched, error) {
	if err := checkName(resolved.Chart); err != nil {
		return Fetched{}, err
	}
	folder := path.Base(resolved.Chart)
	target, err := url.Parse(resolved.URL)
	if err != nil {
		return Fetched{}, fault.Failf(fault.ClassInvalid, "the URL of %s cannot be read", fault.Clean(resolved.Chart))
	}
	if target.Scheme == endpoint.SchemeOCI {
		return fetchOCI(ctx, remote, target, resolved, folder, dir)
	}
	name := resolved.Digest
	if name == "" {
		name = folder + "-" + resolved.Version
	}
	tree, err := archive.Create(dir, name)
	if err != nil {
		return Fetched{}, err
	}
	fetched, err := download(ctx, remote, target, resolved, func(r io.Reader) error {
		return tree.Unpack(ctx, r, archive.InFolder(folder))
	})
	if err != nil {
		return Fetched{}, errors.Join(fault.Wrap(fault.Clean(resolved.Chart+" "+resolved.Version), err), tree.Abort())
	}
	if err := tree.Commit(); err != nil {
		return Fetched{}, err
	}
	fetched.Files, fetched.Bytes = tree.Files(), tree.Bytes()
	return fetched, nil
}

// Archive gives the bytes of a chart's archive as they are in the repository, of at
// most limit bytes.
func Archive(ctx context.Context, remote endpoint.Remote, resolved Resolved, limit int64) (data []byte, digest string, err error) {
	target, err := url.Parse(resolved.URL)
	if err != nil {
		return nil, "", fault.Failf(fault.ClassInvalid, "the URL of %s cannot be read", fault.Clean(resolved.Chart))
	}
	if target.Scheme == endpoint.SchemeOCI {
		return archiveOCI(ctx, remote, target, resolved, limit)
	}
	fetched, err := download(ctx, remote, target, resolved, func(r io.Reader) error {
		data, err = io.ReadAll(&endpoint.Limited{R: r, Limit: limit, What: "the archive"})
		return err
	})
	return data, fetched.Digest, err
}

// download reads an archive to its end and checks its digest, if the index has one.
func download(ctx context.Context, remote endpoint.Remote, target *url.URL, resolved Resolved, read func(io.Reader) error) (Fetched, error) {
	client, err := remote.Connect()
	if err != nil {
		return Fetched{}, err
	}
	defer client.Close()
	response, err := client.Get(ctx, target, remote.PassCredentials)
	if err != nil {
		return Fetched{}, err
	}
	defer response.Body.Close()
	sum := sha256.New()
	body := &endpoint.Limited{
		R: response.Body, Limit: archive.MaxArchiveBytes, What: "the archive",
		Sort: func(err error) error { return fault.Dial(ctx, target.Host, err) },
	}
	if err := read(io.TeeReader(body, sum)); err != nil {
		return Fetched{}, err
	}
	digest := digestPrefix + hex.EncodeToString(sum.Sum(nil))
	if resolved.Digest != "" && digest != resolved.Digest {
		return Fetched{}, fault.Failf(fault.ClassInvalid, "the archive has the digest %s, and the index says %s", digest, resolved.Digest)
	}
	return Fetched{Digest: digest, TransferBytes: body.N}, nil
}

// inRegistry says what of a registry an oci:// URL names. An index may name one at
// another host: then the credentials stay here, but for a docker configuration, which
// says itself for whom each of them is.
func inRegistry(ctx context.Context, remote endpoint.Remote, target *url.URL, resolved Resolved) (endpoint.Remote, oci.Resolved, error) {
	repository, tag, tagged := *target, "", false
	if at := strings.LastIndexByte(target.Path, '/'); at >= 0 {
		var last string
		if last, tag, tagged = strings.Cut(target.Path[at+1:], ":"); tagged {
			repository.Path = target.Path[:at+1] + last
		}
	}
	own, err := endpoint.ParseURL(remote.URL)
	if err != nil {
		return endpoint.Remote{}, oci.Resolved{}, err
	}
	if endpoint.Origin(own) != endpoint.Origin(target) && !remote.PassCredentials {
		remote.Auth = endpoint.Auth{Docker: remote.Docker}
	}
	remote.URL = repository.String()
	if !tagged {
		return remote, oci.Resolved{Digest: resolved.Digest}, nil
	}
	found, err := oci.Resolve(ctx, remote, oci.Ref{Tag: tag})
	return remote, found, err
}

func fetchOCI(ctx context.Context, remote endpoint.Remote, target *url.URL, resolved Resolved, folder, dir string) (Fetched, error) {
	remote, found, err := inRegistry(ctx, remote, target, resolved)
	if err != nil {
		return Fetched{}, err
	}
	fetched, err := oci.FetchChart(ctx, remote, found, folder, dir)
	if err != nil {
		return Fetched{}, err
	}
	return Fetched{Digest: found.Digest, TransferBytes: fetched.TransferBytes, Files: fetched.Files, Bytes: fetched.Bytes}, nil
}

func archiveOCI(ctx context.Context, remote endpoint.Remote, target *url.URL, resolved Resolved, limit int64) ([]byte, string, error) {
	remote, found, err := inRegistry(ctx, remote, target, resolved)
	if err != nil {
		return nil, "", err
	}
	data, err := oci.ChartArchive(ctx, remote, found, limit)
	return data, found.Digest, err
}

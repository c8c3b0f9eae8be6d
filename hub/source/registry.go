// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strings"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/cosign"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/oci"
	"kumodo.io/convoy/hub/source/registry"
)

// checkText is what a check of a registry of charts asks: no chart, but whether it
// answers, and what its index is.
const checkText = "check"

func (c *Coordinator) readChart(o *v1alpha1.HelmRegistry, w Want) (question, error) {
	check := func(ctx context.Context) (Revision, error) {
		remote, err := c.chartRemote(ctx, o)
		if err != nil {
			return Revision{}, err
		}
		digest, err := helmrepo.Check(ctx, remote)
		return Revision{Display: digest, Key: digest}, err
	}
	if w.Chart == "" {
		if w.Revision != "" || w.Version != "" {
			return question{}, failure(v1alpha1.ReasonInvalid, "a HelmRegistry has many charts: content.helm.chart names one")
		}
		return question{text: checkText, ask: check}, nil
	}
	version := w.Version
	if w.Revision != "" {
		version = w.Revision
	}
	return question{
		text: "chart " + w.Chart + " " + version, index: !isOCI(o.Spec.URL),
		ask: func(ctx context.Context) (Revision, error) { return c.lookUpChart(ctx, o, w.Chart, version) },
	}, nil
}

func isOCI(url string) bool { return strings.HasPrefix(url, endpoint.SchemeOCI+":") }

func (c *Coordinator) lookUpChart(ctx context.Context, o *v1alpha1.HelmRegistry, chart, version string) (Revision, error) {
	remote, err := c.chartRemote(ctx, o)
	if err != nil {
		return Revision{}, err
	}
	found, err := helmrepo.Resolve(ctx, remote, chart, version)
	if err != nil {
		return Revision{}, err
	}
	revision := Revision{Display: found.Version, Key: found.Digest, Version: found.Version, chart: found}
	if found.Digest == "" {
		// An index without digests: the version and where it is stand for the content.
		revision.Key = digestPrefix + longKey(found.Chart, found.Version, found.URL)
	} else {
		revision.Display += "@" + found.Digest
	}
	revision.Signer, err = c.signer(ctx, o, remoteOfChart(remote, found), found.Digest)
	return revision, err
}

// remoteOfChart is the repository that a chart of an oci:// registry is in.
func remoteOfChart(remote endpoint.Remote, chart helmrepo.Resolved) endpoint.Remote {
	remote.URL = chart.URL
	return remote
}

func (c *Coordinator) chartJob(ctx context.Context, o *v1alpha1.HelmRegistry, revision Revision) (fetchJob, error) {
	if revision.chart.Chart == "" {
		return fetchJob{}, failure(v1alpha1.ReasonInvalid, "%s was not looked up as a chart", revision.Display)
	}
	remote, err := c.chartRemote(ctx, o)
	if err != nil {
		return fetchJob{}, err
	}
	keys, err := c.keys(ctx, o)
	chart := revision.chart
	return fetchJob{Registry: &registry.Job{Remote: remote, Chart: &chart, Verify: verifyOf(o) != nil, Keys: keys}}, err
}

func (c *Coordinator) readArtifact(o *v1alpha1.OCIRegistry, w Want) (question, error) {
	ref := oci.Ref(o.Spec.Ref)
	switch {
	case strings.HasPrefix(w.Revision, digestPrefix):
		ref = oci.Ref{Digest: w.Revision}
	case w.Revision != "":
		ref = oci.Ref{Tag: w.Revision}
	}
	look := func(ctx context.Context) (Revision, error) { return c.lookUpArtifact(ctx, o, ref) }
	q := question{text: "tag " + ref.Tag + " semver " + ref.Semver + " " + ref.Digest, ask: look}
	if ref.Digest != "" && o.Spec.Verify == nil {
		q.known = &Revision{Display: ref.Digest, Key: ref.Digest}
	}
	return q, nil
}

func (c *Coordinator) lookUpArtifact(ctx context.Context, o *v1alpha1.OCIRegistry, ref oci.Ref) (Revision, error) {
	remote, err := c.artifactRemote(ctx, o)
	if err != nil {
		return Revision{}, err
	}
	found, err := oci.Resolve(ctx, remote, ref)
	if err != nil {
		return Revision{}, err
	}
	revision := Revision{Display: found.Display, Key: found.Digest}
	revision.Signer, err = c.signer(ctx, o, remote, found.Digest)
	return revision, err
}

func (c *Coordinator) artifactJob(ctx context.Context, o *v1alpha1.OCIRegistry, revision Revision) (fetchJob, error) {
	if !oci.IsDigest(revision.Key) {
		return fetchJob{}, failure(v1alpha1.ReasonInvalid, "%q is no digest", revision.Key)
	}
	remote, err := c.artifactRemote(ctx, o)
	if err != nil {
		return fetchJob{}, err
	}
	keys, err := c.keys(ctx, o)
	artifact := &oci.Resolved{Display: revision.Display, Digest: revision.Key}
	return fetchJob{Registry: &registry.Job{Remote: remote, Artifact: artifact, Verify: verifyOf(o) != nil, Keys: keys}}, err
}

// errNoDigest: there is nothing that a signature could be about.
var errNoDigest = errors.New("there is no digest that could be signed")

// signer checks the signature that a source requires; empty where it requires none.
// What cannot be verified is an error.
func (c *Coordinator) signer(ctx context.Context, o v1alpha1.Source, remote endpoint.Remote, digest string) (string, error) {
	keys, err := c.keys(ctx, o)
	if err != nil || keys == nil {
		return "", err
	}
	if digest == "" {
		return "", errNoDigest
	}
	return cosign.Verify(ctx, remote, digest, keys)
}

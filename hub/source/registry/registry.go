// SPDX-License-Identifier: Apache-2.0

// Package registry is what a fetch worker does for registries: one job, one folder
// with a snapshot. It belongs to the first step of the flow source -> render ->
// store -> deliver -> apply -> observe -> report.
package registry

import (
	"context"
	"errors"
	"strings"

	"kumodo.io/convoy/hub/source/archive"
	"kumodo.io/convoy/hub/source/cosign"
	"kumodo.io/convoy/hub/source/dependency"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/oci"
	"kumodo.io/convoy/hub/source/snapshot"
)

// Job is one fetch. Exactly one of Chart, Artifact and Dependencies is set.
type Job struct {
	// Remote of a chart or an artifact; of dependencies only its Policy counts.
	Remote       endpoint.Remote    `json:"remote"`
	Chart        *helmrepo.Resolved `json:"chart,omitempty"`
	Artifact     *oci.Resolved      `json:"artifact,omitempty"`
	Dependencies *Dependencies      `json:"dependencies,omitempty"`
	// Verify says that one of the Keys (public, PEM) has to have signed.
	Verify bool     `json:"verify,omitempty"`
	Keys   [][]byte `json:"keys,omitempty"`
	// Dir takes the snapshot.
	Dir string `json:"dir"`
}

// Dependencies asks for the charts that a chart needs and does not have.
type Dependencies struct {
	// Snapshot is the folder of the snapshot that the chart is in; Path the chart's
	// folder in it.
	Snapshot string `json:"snapshot"`
	Path     string `json:"path"`
	// Remotes are registries with the credentials that belong to them.
	Remotes []endpoint.Remote `json:"remotes,omitempty"`
}

// Done is what came of a job.
type Done struct {
	// Digest of a chart's archive, or of an artifact's manifest.
	Digest string `json:"digest,omitempty"`
	// Signer is the key that had signed, if one had to.
	Signer        string `json:"signer,omitempty"`
	TransferBytes int64  `json:"transferBytes"`
	Files         int    `json:"files"`
	Bytes         int64  `json:"bytes"`
	// Charts that a job for dependencies found. The snapshot in Dir has them under
	// the path that they have in the source: PATH/charts/....
	Charts []dependency.Chart `json:"charts,omitempty"`
}

// Fetch does a job. A snapshot is there only if there is no error.
func Fetch(ctx context.Context, job Job) (Done, error) {
	switch {
	case job.Chart != nil:
		return fetchChart(ctx, job)
	case job.Artifact != nil:
		return fetchArtifact(ctx, job)
	case job.Dependencies != nil:
		return collect(ctx, job)
	default:
		return Done{}, fault.Failf(fault.ClassInvalid, "a job that says nothing")
	}
}

func fetchChart(ctx context.Context, job Job) (done Done, err error) {
	if job.Verify {
		if !strings.HasPrefix(job.Remote.URL, endpoint.SchemeOCI+"://") {
			return Done{}, fault.Failf(fault.ClassSignature, "signatures are looked for in OCI registries; charts of an index have none that could be verified")
		}
		signed := job.Remote
		signed.URL = job.Chart.URL
		if done.Signer, err = cosign.Verify(ctx, signed, job.Chart.Digest, job.Keys); err != nil {
			return Done{}, err
		}
	}
	fetched, err := helmrepo.Fetch(ctx, job.Remote, *job.Chart, job.Dir)
	done.Digest, done.TransferBytes, done.Files, done.Bytes = fetched.Digest, fetched.TransferBytes, fetched.Files, fetched.Bytes
	return done, err
}

func fetchArtifact(ctx context.Context, job Job) (done Done, err error) {
	if job.Verify {
		if done.Signer, err = cosign.Verify(ctx, job.Remote, job.Artifact.Digest, job.Keys); err != nil {
			return Done{}, err
		}
	}
	fetched, err := oci.Fetch(ctx, job.Remote, *job.Artifact, job.Dir)
	done.Digest, done.TransferBytes, done.Files, done.Bytes = job.Artifact.Digest, fetched.TransferBytes, fetched.Files, fetched.Bytes
	return done, err
}

func collect(ctx context.Context, job Job) (done Done, err error) {
	source, err := snapshot.Open(job.Dependencies.Snapshot)
	if err != nil {
		return Done{}, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	tree, err := archive.Create(job.Dir, source.Commit())
	if err != nil {
		return Done{}, err
	}
	done.Charts, err = dependency.Collect(ctx, dependency.Options{
		Snapshot: source, Path: job.Dependencies.Path, Policy: job.Remote.Policy, Remotes: job.Dependencies.Remotes,
	}, tree)
	if err != nil {
		return Done{}, errors.Join(err, tree.Abort())
	}
	done.Files, done.Bytes = tree.Files(), tree.Bytes()
	return done, tree.Commit()
}

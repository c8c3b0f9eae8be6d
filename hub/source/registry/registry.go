// SPDX-License-Identifier: Apache-2.0

// Package registry is what a fetch worker does for registries: one job, one folder
// with a snapshot. It belongs to the first step of the flow source -> render ->
// store -> deliver -> apply -> observe -> report.
package registry

import (
	"context"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
	"kumodo.io/convoy/hub/source/oci"
)

// Job is one fetch. Exactly one of Chart, Artifact and Dependencies is set.
type Job struct {
	Remote       endpoint.Remote    `json:"remote"`
	Chart        *helmrepo.Resolved `json:"chart,omitempty"`
	Artifact     *oci.Resolved      `json:"artifact,omitempty"`
	Dependencies *Dependencies      `json:"dependencies,omitempty"`
	// Keys, public, PEM: if there are any, one of them has to have signed.
	Keys [][]byte `json:"keys,omitempty"`
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
	// Signer is the key that had signed, if keys were given.
	Signer        string `json:"signer,omitempty"`
	TransferBytes int64  `json:"transferBytes"`
	Files         int    `json:"files"`
	Bytes         int64  `json:"bytes"`
	// Charts that a job for dependencies found. The snapshot in Dir has them under
	// the path that they have in the source: PATH/charts/....
	Charts []Chart `json:"charts,omitempty"`
}

// Chart is a dependency that was found.
type Chart struct {
	Name, Version, Repository, Digest string
}

// Fetch does a job.
func Fetch(ctx context.Context, job Job) (Done, error) {
	return Done{}, fault.Failf(fault.ClassInvalid, "registries are not served by this build")
}

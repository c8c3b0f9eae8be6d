// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"io"

	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/source/snapshot"
	"kumodo.io/convoy/hub/store"
)

// Source is what a Job takes of a source.Snapshot.
type Source interface {
	// Part streams what is in and below some paths.
	Part(paths []string) (io.ReadCloser, error)
	// Kind says what stands at a path.
	Kind(path string) (snapshot.Kind, error)
	// InputDigest is that of all below a path, snapshot.AbsentDigest if there is none.
	InputDigest(path string) (string, error)
}

// Images knows the digests of images.
type Images interface {
	// Digest, sha256:<hex>, of a reference, the same each time for one revision of a
	// source. An error with a Reason() names that of the Rendered condition.
	Digest(ctx context.Context, reference string) (string, error)
}

// Job is one render.
type Job struct {
	// Tenant is whose files they are: the Release's namespace.
	Tenant string
	// Snapshot has the files.
	Snapshot Source
	// Content says what is made of them.
	Content content.Job
	// Images of a job with Content.Pin.
	Images Images
	// Charts that a chart of the source lacks; nil: one that lacks any fails.
	Charts Charts
	// Fresh: a render is made though one with the same inputs is known.
	Fresh bool
}

// Result describes a render in the store.
type Result struct {
	// InputsHash of what it was made of.
	InputsHash string
	// Reads are the facts that it read; InputsHash is over these.
	Reads []string
	// Objects layer: its digest is that of the render.
	Objects store.Descriptor
	// Sealed layer, nil if no value was sealed.
	Sealed *store.Descriptor
	// Count of objects, and how many of them are Hooks.
	Count, Hooks int
	// Kind of content, and of a chart its name, version and appVersion.
	Kind, Chart, ChartVersion, AppVersion string
	// Warnings for people.
	Warnings []string
	// Shared: no render was made for this job.
	Shared bool
}

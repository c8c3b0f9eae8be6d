// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"
)

// store keeps the one Lease. All return what is stored afterwards.
type store interface {
	// get fails with errNotFound.
	get(ctx context.Context) (record, error)
	// create fails with errExists.
	create(ctx context.Context, spec spec) (record, error)
	// update changes the version that was read, and fails with errChanged when there
	// is another by now, with errNotFound when there is none.
	update(ctx context.Context, version string, spec spec) (record, error)
}

// record is a Lease as it is stored.
type record struct {
	version string
	spec    spec
}

// spec is what a Lease says.
type spec struct {
	holder      string
	duration    time.Duration
	acquired    time.Time // by the clock of the holder: for people
	renewed     time.Time // likewise; others look only at whether it changes
	transitions int32
}

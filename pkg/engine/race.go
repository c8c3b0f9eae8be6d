// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An object that others write to may change between a look at it and what follows. The
// server answers that with 409, and what the object is now is what counts: it is looked
// at again at once. Only a race that lasts is told.

// isRace says whether an object changed after it was looked at.
func isRace(err error) bool {
	return errors.Is(err, errRaced) || (apierrors.IsConflict(err) && len(conflictsOf(err)) == 0)
}

// repairNow is repair, and looks again while the object changes.
func (r *release) repairNow(ctx context.Context, o *object, live map[string]any, how repairing) (repaired, error) {
	result, err := r.repair(ctx, o, live, how)
	for race := 1; race < maxRaces && isRace(err) && ctx.Err() == nil; race++ {
		result, err = r.repair(ctx, o, nil, how)
	}
	return result, err
}

// passing says whether a repair that failed is to be tried again without a word: the
// object kept changing, and not for long yet.
func (c *contest) passing(err error) bool {
	if !isRace(err) {
		c.raced = 0
		return false
	}
	c.raced++
	return c.raced < racesTold
}

// SPDX-License-Identifier: Apache-2.0

package validation

import "time"

// Limits of what is accepted. Sizes are in bytes.
const (
	MaxClusterMetadataKeys  = 64
	MaxClusterMetadataKey   = 253
	MaxClusterMetadataValue = 1024

	// MaxAuthType bounds a type of auth that this build does not know.
	MaxAuthType = 63

	// MaxDigest bounds the digest in a confirmation.
	MaxDigest = 128

	MaxURL      = 2048
	MaxPath     = 1024
	MaxRef      = 255
	MaxInterval = 24 * time.Hour
	MaxTimeout  = 24 * time.Hour

	MinReleaseInterval = 10 * time.Second
	MinReleaseTimeout  = time.Second
	MinSourceInterval  = 5 * time.Second

	MaxJoinTTL = time.Hour
	MinJoinTTL = time.Second

	// MaxHelmReleaseName is Helm's own limit.
	MaxHelmReleaseName = 53
	MaxChartName       = 255
	MaxValuesFiles     = 32
	MaxValuesFrom      = 32
	// MaxValues of one Release, inline.
	MaxValues       = 512 << 10
	MaxImageSecrets = 8

	MaxMutations    = 64
	MaxMutationName = 253
	MaxInlineBodies = 64
	// MaxMutationBody of one inline body, MaxMutationBodies of all of a Release.
	MaxMutationBody   = 64 << 10
	MaxMutationBodies = 512 << 10
	// MaxExpression of an if, MaxSelector of a label selector, MaxTargetText of
	// another field of a target.
	MaxExpression = 4 << 10
	MaxSelector   = 1 << 10
	MaxTargetText = 253

	// MaxHooks of spec.lifecycle, MaxHookObject of the object of one in JSON,
	// MaxHookObjects of all.
	MaxHooks       = 32
	MaxHookObject  = 64 << 10
	MaxHookObjects = 256 << 10
	// MaxHookWord of the name of a hook or run in a request: kind, namespace and name of
	// an object.
	MaxHookWord = 640

	// MaxInventoryEntries of one ReleaseInventory.
	MaxInventoryEntries = 10_000
	// MaxExceptions and MaxHistory of a Release's status.
	MaxExceptions = 64
	MaxHistory    = 10
	// MaxHookRuns and MaxHeldObjects of it.
	MaxHookRuns    = 32
	MaxHeldObjects = 10
	// MaxAPIVersions of a Cluster's status.
	MaxAPIVersions = 512
)

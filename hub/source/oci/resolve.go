// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/fault"
)

const (
	defaultTag   = "latest"
	digestPrefix = "sha256:"
	// maxTagBytes is what a registry allows.
	maxTagBytes = 128
)

// IsDigest reports sha256: and 64 hexadecimal digits in lower case.
func IsDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, digestPrefix)
	if !ok || len(digits) != 2*sha256.Size || digits != strings.ToLower(digits) {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// Resolve says which artifact a ref leads to. A digest is only asked for, so that a
// registry that does not have it is noticed.
func Resolve(ctx context.Context, remote endpoint.Remote, ref Ref) (Resolved, error) {
	repository, err := Open(ctx, remote)
	if err != nil {
		return Resolved{}, err
	}
	defer repository.Close()
	tag := ref.Tag
	switch {
	case ref.Digest != "":
		if !IsDigest(ref.Digest) {
			return Resolved{}, fault.Failf(fault.ClassInvalid, "ref.digest is written sha256: and 64 hexadecimal digits in lower case")
		}
		found, err := repository.Resolve(ctx, ref.Digest)
		if err != nil {
			return Resolved{}, err
		}
		return Resolved{Display: found.Digest.String(), Digest: found.Digest.String()}, nil
	case ref.Semver != "":
		if tag, err = repository.highest(ctx, ref.Semver); err != nil {
			return Resolved{}, err
		}
	case tag == "":
		tag = defaultTag
	}
	if len(tag) > maxTagBytes || strings.ContainsAny(tag, ":/@") {
		return Resolved{}, fault.Failf(fault.ClassInvalid, "%s is not a tag", fault.Clean(tag))
	}
	found, err := repository.Resolve(ctx, tag)
	if err != nil {
		return Resolved{}, err
	}
	digest := found.Digest.String()
	if !IsDigest(digest) {
		return Resolved{}, fault.Failf(fault.ClassInvalid, "%s %s has a digest of a kind that is not supported", repository.Name(), tag)
	}
	return Resolved{Display: tag + "@" + digest, Tag: tag, Digest: digest}, nil
}

// highest tag in a range of versions.
func (r *Repository) highest(ctx context.Context, text string) (string, error) {
	choice, err := NewChoice(text)
	if err != nil {
		return "", err
	}
	if err := r.Tags(ctx, choice.Offer); err != nil {
		return "", err
	}
	tag, ok := choice.Best()
	if !ok {
		return "", fault.Failf(fault.ClassNotFound, "%s has no tag in the range %s", r.Name(), fault.Clean(text))
	}
	return tag, nil
}

// Choice takes the highest of many versions that are in a range.
type Choice struct {
	within *semver.Constraints
	best   *semver.Version
	name   string
}

// NewChoice reads a range; an empty one is that of all that are no pre-releases.
func NewChoice(text string) (*Choice, error) {
	if text == "" {
		text = "*"
	}
	within, err := semver.NewConstraint(text)
	if err != nil {
		return nil, fault.Failf(fault.ClassInvalid, "%q is neither a version nor a range of versions", fault.Clean(text))
	}
	return &Choice{within: within}, nil
}

// Offer one more. In tags, + is written _.
func (c *Choice) Offer(name string) { c.Better(name) }

// Better reports that a version is taken in place of what was the best so far.
func (c *Choice) Better(name string) bool {
	version, err := semver.NewVersion(strings.ReplaceAll(name, "_", "+"))
	if err != nil || !c.within.Check(version) {
		return false
	}
	// Versions that differ in build metadata alone are equal: the greater text is
	// taken, so that the choice does not hang on the order.
	if c.best != nil && (version.LessThan(c.best) || version.Equal(c.best) && name <= c.name) {
		return false
	}
	c.best, c.name = version, name
	return true
}

// Best that was offered, as it was written.
func (c *Choice) Best() (string, bool) { return c.name, c.best != nil }

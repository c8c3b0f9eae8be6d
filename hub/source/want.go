// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/helmrepo"
)

// Want is what a Release, or a check, asks a source for.
type Want struct {
	// Object is the source. It is not changed.
	Object v1alpha1.Source
	// Revision, if given, is used instead of what the source's ref says: of a
	// GitRepository a commit, tag, branch or full ref; of a HelmRegistry a version, a
	// range or a digest, in place of Version; of an OCIRegistry a tag or a digest.
	Revision string
	// Chart of a HelmRegistry, and the version or range of it; unused with others.
	Chart, Version string
}

// Revision is what a ref led to.
type Revision struct {
	// Display is for people: main@sha1:<commit>, latest@sha256:<hex>, 1.2.3@sha256:<hex>.
	Display string
	// Key alone decides: a commit (40 hexadecimal digits), or sha256:<hex>.
	Key string
	// ResolvedAt is when the remote said so; for what needs no look-up, when it was
	// asked for.
	ResolvedAt time.Time
	// Version of a chart.
	Version string
	// Signer is the key that signed, where the source requires a signature: sha256:<hex>.
	Signer string

	chart helmrepo.Resolved // of a chart: where it is
}

// question is a Want that was read: what is to be asked, and how.
type question struct {
	// text tells apart what is asked of one source.
	text string
	// origin that is asked: scheme, host and port.
	origin string
	// known is the answer where none has to be asked for.
	known *Revision
	// ask the remote.
	ask func(ctx context.Context) (Revision, error)
	// index says that what the source was last seen at decides about this answer
	// too: as long as it is the same, the answer is.
	index bool
}

// read makes a question of a Want. It asks nobody.
func (c *Coordinator) read(w Want) (question, error) {
	var q question
	var err error
	switch o := w.Object.(type) {
	case *v1alpha1.GitRepository:
		q, err = c.readGit(o, w)
	case *v1alpha1.HelmRegistry:
		q, err = c.readChart(o, w)
	case *v1alpha1.OCIRegistry:
		q, err = c.readArtifact(o, w)
	default:
		return question{}, failure(v1alpha1.ReasonInvalid, "a source of a kind that is not served: %T", w.Object)
	}
	if err != nil {
		return question{}, err
	}
	q.origin = origin(w.Object.SourceURL())
	return q, nil
}

// job is what a fetch worker is asked to do.
func (c *Coordinator) job(ctx context.Context, w Want, revision Revision) (fetchJob, error) {
	switch o := w.Object.(type) {
	case *v1alpha1.GitRepository:
		return c.gitJob(ctx, o, revision)
	case *v1alpha1.HelmRegistry:
		return c.chartJob(ctx, o, revision)
	case *v1alpha1.OCIRegistry:
		return c.artifactJob(ctx, o, revision)
	default:
		return fetchJob{}, failure(v1alpha1.ReasonInvalid, "a source of a kind that is not served: %T", w.Object)
	}
}

// origin is whom a URL asks: the places of one host share its limits. A URL that
// cannot be used asks nobody; whoever dials says what is wrong with it.
func origin(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "ssh":
		return "ssh://" + strings.ToLower(u.Host)
	default:
		return endpoint.Origin(u)
	}
}

// identity names whose a source is and from where. Nobody is given what was fetched
// for another, with another one's credentials.
func identity(o v1alpha1.Source) string {
	parts := []string{o.GetNamespace(), o.GetName(), string(o.GetUID()), o.SourceURL()}
	if kind := o.SourceKind(); kind != v1alpha1.KindGitRepository {
		parts = append(parts, kind)
	}
	return sourceKey(parts...)
}

// resolveKey tells apart all that decides about an answer.
func resolveKey(o v1alpha1.Source, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s", identity(o), text)
	for _, name := range append(o.SecretNames(), o.SourceStatus().CheckedSecrets...) {
		fmt.Fprintf(&b, "\x00%s", name)
	}
	if v := verifyOf(o); v != nil {
		fmt.Fprintf(&b, "\x00verify %s %s", v.Provider, v.SecretRef.Name)
	}
	return b.String()
}

func verifyOf(o v1alpha1.Source) *v1alpha1.SourceVerify {
	switch o := o.(type) {
	case *v1alpha1.HelmRegistry:
		return o.Spec.Verify
	case *v1alpha1.OCIRegistry:
		return o.Spec.Verify
	}
	return nil
}

// snapshotName is the name of a snapshot on disk.
func snapshotName(o v1alpha1.Source, key string) string {
	name := identity(o)
	if v := verifyOf(o); v != nil {
		// What was fetched before a signature was required is not used after.
		name = sourceKey(name, v.Provider, v.SecretRef.Name)
	}
	return name + "-" + strings.ReplaceAll(key, ":", "-")
}

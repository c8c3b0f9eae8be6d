// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// settle waits until a Release is at rest on every target and prints a line for each.
func (p *Player) settle(ctx context.Context, r *release) error {
	for _, t := range p.targets {
		if err := p.rest(ctx, t, r); err != nil {
			return err
		}
		if err := p.remember(ctx, t, r); err != nil {
			return err
		}
	}
	return nil
}

// rest waits until a Release speaks of what was asked last, and is Ready or has not
// changed for a while. After Options.Rest it is taken as it is, and that is said; and
// sooner where nothing can change, since the hub is stopped or nobody hears of the target.
func (p *Player) rest(ctx context.Context, t *target, r *release) error {
	limit := time.NewTimer(p.opts.Rest)
	defer limit.Stop()
	var last *corev1alpha1.Release
	version, since := "", time.Now()
	if !p.hubRuns() {
		p.say("# %s on %s: the hub is stopped\n", r.name, t.cluster)
		return nil
	}
	for {
		now, gone, err := p.ask(ctx, t, r)
		if err != nil {
			return err
		}
		if version == "" && !gone {
			since = time.Now()
		}
		if gone && (r.deleted || time.Since(since) >= quiet) {
			p.say("# %s on %s: the hub has no such Release\n", r.name, t.cluster)
			return nil
		}
		if now != nil {
			last = now
			if now.ResourceVersion != version {
				version, since = now.ResourceVersion, time.Now()
			}
			if r.current(t, now) && (met(now, corev1alpha1.ConditionReady) || !moving(now) && time.Since(since) >= quiet) {
				p.say("# %s on %s: %s\n%s", r.name, t.cluster, summary(now), faults(now))
				return nil
			}
			if holds(now) && time.Since(since) >= calm {
				p.say("# %s on %s: %s\n%s#   it waits, and nothing has changed for %s\n", r.name, t.cluster, summary(now), faults(now), calm)
				return nil
			}
			if r.current(t, now) && unhealthy(now) && time.Since(since) >= calm {
				p.say("# %s on %s: %s\n#   Healthy: %s; all else is as it should be, and nothing has changed for %s\n", r.name, t.cluster, summary(now),
					condition(now, corev1alpha1.ConditionHealthy).Message, calm)
				return nil
			}
		}
		if why := t.deaf(); why != "" && now != nil && time.Since(since) >= calm {
			p.say("# %s on %s: %s\n%s#   %s, and nothing has changed for %s\n", r.name, t.cluster, summary(now), faults(now), why, calm)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for Release %s: %w", r.name, context.Cause(ctx))
		case <-limit.C:
			p.say("# %s on %s: NOT AT REST after %s: %s\n", r.name, t.cluster, p.opts.Rest, summary(last))
			return nil
		case <-time.After(pollPause):
		}
	}
}

// read gives a Release; nil when there is none or the hub does not answer.
func (p *Player) read(ctx context.Context, t *target, r *release) (*corev1alpha1.Release, error) {
	now, _, err := p.ask(ctx, t, r)
	return now, err
}

// ask tells that there is none, gone, from no answer.
func (p *Player) ask(ctx context.Context, t *target, r *release) (now *corev1alpha1.Release, gone bool, err error) {
	u, err := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace).Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil && ctx.Err() == nil:
		return nil, false, nil // it is asked again until the time is over
	case err != nil:
		return nil, false, err
	}
	now, err = harness.As[corev1alpha1.Release](u)
	return now, false, err
}

// current says whether the status speaks of what was committed and asked last.
func (r *release) current(t *target, now *corev1alpha1.Release) bool {
	status := &now.Status
	if status.ObservedGeneration != now.Generation || len(status.Conditions) == 0 || now.DeletionTimestamp != nil {
		return false
	}
	if r.asked[t] != "" {
		return status.LastSyncRequest == r.asked[t]
	}
	return r.commit == "" || strings.HasSuffix(status.SourceRevision, r.commit) || failed(now, corev1alpha1.ConditionRendered)
}

func condition(now *corev1alpha1.Release, typ string) *metav1.Condition {
	for i := range now.Status.Conditions {
		if now.Status.Conditions[i].Type == typ {
			return &now.Status.Conditions[i]
		}
	}
	return nil
}

func met(now *corev1alpha1.Release, typ string) bool {
	c := condition(now, typ)
	return c != nil && c.Status == metav1.ConditionTrue
}

func failed(now *corev1alpha1.Release, typ string) bool {
	c := condition(now, typ)
	return c != nil && c.Status == metav1.ConditionFalse
}

// moving says whether the Release says of itself that it is not done.
func moving(now *corev1alpha1.Release) bool {
	c := condition(now, corev1alpha1.ConditionApplied)
	if c != nil && (c.Reason == corev1alpha1.ReasonProgressing || c.Reason == corev1alpha1.ReasonNotReported) {
		return true
	}
	return now.Status.LastOperation != nil && now.Status.LastOperation.Phase == corev1alpha1.PhaseRunning
}

// holds says whether a Release says of itself that it waits for somebody else, before
// it looks at what was asked of it.
func holds(now *corev1alpha1.Release) bool {
	c := condition(now, corev1alpha1.ConditionApplied)
	return c != nil && now.DeletionTimestamp == nil && now.Status.ObservedGeneration == now.Generation && slices.Contains([]string{
		corev1alpha1.ReasonSuspended, corev1alpha1.ReasonWaitingForWave, corev1alpha1.ReasonDependency, corev1alpha1.ReasonClusterNotReady,
	}, c.Reason)
}

// unhealthy says whether a Release is applied, and waits for nothing but the health of
// its objects.
func unhealthy(now *corev1alpha1.Release) bool {
	c := condition(now, corev1alpha1.ConditionHealthy)
	return met(now, corev1alpha1.ConditionApplied) && c != nil && c.Status != metav1.ConditionTrue
}

// faults are the messages of what went wrong, a line each.
func faults(now *corev1alpha1.Release) string {
	var b strings.Builder
	for _, typ := range []string{corev1alpha1.ConditionRendered, corev1alpha1.ConditionApplied} {
		if c := condition(now, typ); c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			fmt.Fprintf(&b, "#   %s: %s\n", typ, strings.ReplaceAll(c.Message, "\n", "\n#     "))
		}
	}
	return b.String()
}

// summary is one line.
func summary(now *corev1alpha1.Release) string {
	if now == nil {
		return "the hub does not answer"
	}
	var parts []string
	for _, c := range now.Status.Conditions {
		text := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Status != metav1.ConditionTrue {
			text += " " + c.Reason
		}
		parts = append(parts, text)
	}
	counts := now.Status.Objects
	return fmt.Sprintf("%s; %d objects, %d applied, %d failed; revision %s", strings.Join(parts, ", "), counts.Total, counts.Applied, counts.Failed, now.Status.SourceRevision)
}

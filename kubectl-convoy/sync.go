// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Errors of a sync.
var (
	errSyncFailed  = errors.New("the sync failed")
	errSyncTimeout = errors.New("the sync did not end in time")
	errNotHeldSync = errors.New("no deletions of it are held: there is nothing to confirm")
)

type syncVerb struct {
	streams genericiooptions.IOStreams
	force   bool
	// confirm the deletions that are held.
	confirm bool
	wait    bool
	timeout time.Duration
}

func newSync(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &syncVerb{streams: streams}
	command := &cobra.Command{
		Use:   "sync NAME",
		Short: "Sync Release NAME now",
		Long: `Sync Release NAME now: ask its source for the newest revision and apply what
changed. With --force it is fetched, rendered and applied again although nothing
changed, and its hooks run again. With --confirm-deletions the deletions are carried
out that the last sync holds, being more than the budget; they are told before, and no
others are confirmed. That holds for an hour and needs the verb confirm on releases.
With --wait it ends when the Release is ready, or fails when the sync has: where
syncPolicy.retry.limit leaves attempts it waits for the last of them.`,
		Example: `  # Sync and wait until it is ready
  kubectl convoy sync shop --wait --timeout 2m

  # Applied=False PruneHeld: delete what is held
  kubectl convoy sync shop --confirm-deletions`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			return verb.run(command.Context(), hub, args[0])
		},
	}
	command.Flags().BoolVar(&verb.force, "force", false, "fetch, render and apply again although nothing changed")
	command.Flags().BoolVar(&verb.confirm, "confirm-deletions", false, "carry out the deletions that wait for a confirmation")
	command.Flags().BoolVar(&verb.wait, "wait", false, "wait until the Release is ready, or the sync has failed")
	command.Flags().DurationVar(&verb.timeout, "timeout", 5*time.Minute, "how long --wait waits")
	return command
}

func (s *syncVerb) run(ctx context.Context, hub *hub, name string) error {
	request := &corev1alpha1.SyncRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Force: s.force}
	var err error
	if s.confirm {
		request.ConfirmDeletions, err = s.confirmation(ctx, hub, name)
	}
	var answer *corev1alpha1.SyncRequest
	if err == nil {
		answer, err = hub.sync(ctx, request)
	}
	if errors.Is(err, errNoRelease) {
		return fmt.Errorf("there is no Release %q in namespace %q: kubectl get releases -A lists them, -n names another namespace: %w", name, hub.namespace, err)
	}
	if err != nil {
		return fmt.Errorf("asking for a sync of Release %s/%s: %w", hub.namespace, name, err)
	}
	fmt.Fprintf(s.streams.Out, "release/%s sync requested at %s\n", name, answer.RequestedAt)
	if !s.wait {
		return nil
	}
	return s.await(ctx, hub, name, answer.RequestedAt)
}

// confirmation names what is held, and tells people what that is.
func (s *syncVerb) confirmation(ctx context.Context, hub *hub, name string) (*corev1alpha1.DeletionConfirmation, error) {
	var release corev1alpha1.Release
	if err := hub.get(ctx, "releases", name, &release); err != nil {
		return nil, explain(err, errNoRelease)
	}
	held := release.Status.HeldPrune
	if held == nil {
		return nil, errNotHeldSync
	}
	fmt.Fprintf(s.streams.Out, "release/%s deletes %d of %d objects, held by order %d:\n", name, held.Count, held.Total, held.Sequence)
	for _, object := range held.Objects {
		fmt.Fprintf(s.streams.Out, "  %s\n", object)
	}
	if more := int(held.Count) - len(held.Objects); more > 0 {
		fmt.Fprintf(s.streams.Out, "  and %d more\n", more)
	}
	return &corev1alpha1.DeletionConfirmation{Sequence: held.Sequence, Digest: held.Digest}, nil
}

// await prints each new word about the sync that was requested at the given time,
// and returns when it has ended.
func (s *syncVerb) await(ctx context.Context, hub *hub, name, requestedAt string) error {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var said string
	err := hub.watchRelease(limited, name, func(release *corev1alpha1.Release) (bool, error) {
		state := judge(release, requestedAt)
		if state.text != said {
			fmt.Fprintf(s.streams.Out, "release/%s %s\n", name, state.text)
			said = state.text
		}
		if state.failed {
			return true, fmt.Errorf("%w: %s", errSyncFailed, state.text)
		}
		return state.done, nil
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w (%s): last seen: %s; kubectl -n %s describe release %s says more", errSyncTimeout, s.timeout, said, hub.namespace, name)
	}
	return err
}

// progress is what a Release says of a sync.
type progress struct {
	text         string
	done, failed bool
}

// judge reads the status of a Release: has the sync asked for at requestedAt
// ended, and how?
func judge(release *corev1alpha1.Release, requestedAt string) progress {
	status := &release.Status
	if !actedOn(status.LastSyncRequest, requestedAt) {
		return progress{text: "waiting for the hub to act on it"}
	}
	of := func(kind string) metav1.Condition {
		if found := meta.FindStatusCondition(status.Conditions, kind); found != nil {
			return *found
		}
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: corev1alpha1.ReasonNotReported}
	}
	say := func(condition metav1.Condition) string {
		text := fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason)
		if condition.Message != "" {
			text += ": " + condition.Message
		}
		return text
	}
	rendered, applied, ready := of(corev1alpha1.ConditionRendered), of(corev1alpha1.ConditionApplied), of(corev1alpha1.ConditionReady)
	switch {
	case status.ObservedGeneration != release.Generation:
		return progress{text: "waiting for the hub to see its newest spec"}
	case ready.Status == metav1.ConditionTrue:
		return progress{text: say(ready), done: true}
	case rendered.Status == metav1.ConditionFalse:
		return progress{text: say(rendered), failed: true}
	case applied.Status == metav1.ConditionFalse && retried(applied.Reason) && attempts(release) > 0 && !aborted(status):
		return progress{text: fmt.Sprintf("%s (it is tried again, %d times at most)", say(applied), attempts(release))}
	case applied.Status == metav1.ConditionFalse && ended(applied.Reason):
		return progress{text: say(applied), failed: true}
	case applied.Status == metav1.ConditionUnknown && failed(status):
		return progress{text: fmt.Sprintf("%s (an attempt failed, it is tried again: %s)", say(applied), status.LastOperation.Message)}
	case applied.Status != metav1.ConditionTrue:
		return progress{text: say(applied)}
	case failed(status):
		// All is applied, and what had to follow did not in time: nothing tries again.
		return progress{text: fmt.Sprintf("%s %s: %s", status.LastOperation.Type, status.LastOperation.Phase, status.LastOperation.Message), failed: true}
	default:
		return progress{text: say(ready)}
	}
}

// failed says whether the last operation is the sync of the order that stands now, and
// did not succeed.
func failed(status *corev1alpha1.ReleaseStatus) bool {
	last := status.LastOperation
	return last != nil && last.Type == corev1alpha1.OperationSync && last.Sequence == status.Sequence &&
		(last.Phase == corev1alpha1.PhaseFailed || last.Phase == corev1alpha1.PhaseAborted)
}

// aborted says whether a person ended that sync.
func aborted(status *corev1alpha1.ReleaseStatus) bool {
	return failed(status) && status.LastOperation.Phase == corev1alpha1.PhaseAborted
}

// attempts is how often a sync that failed is tried again, where that has an end; 0: not at
// all, or until somebody mends what is wrong.
func attempts(release *corev1alpha1.Release) int32 {
	if limit := release.Spec.SyncPolicy.Retry.Limit; limit != nil {
		return *limit
	}
	return 0
}

// retried says whether the agent tries again by itself what ended for a reason.
func retried(reason string) bool {
	switch reason {
	case corev1alpha1.ReasonDryRunFailed, corev1alpha1.ReasonApplyFailed, corev1alpha1.ReasonConflict, corev1alpha1.ReasonOwnedByOther,
		corev1alpha1.ReasonDeadline, corev1alpha1.ReasonPruneFailed, corev1alpha1.ReasonHookFailed:
		return true
	default:
		return false
	}
}

// ended tells reasons that need a person from those that pass.
func ended(reason string) bool {
	switch reason {
	case corev1alpha1.ReasonDryRunFailed, corev1alpha1.ReasonApplyFailed, corev1alpha1.ReasonConflict,
		corev1alpha1.ReasonOwnedByOther, corev1alpha1.ReasonRenderRefused, corev1alpha1.ReasonOrderRefused,
		corev1alpha1.ReasonAgentTooOld, corev1alpha1.ReasonDeadline, corev1alpha1.ReasonPruneFailed,
		corev1alpha1.ReasonPruneHeld, corev1alpha1.ReasonHookFailed, corev1alpha1.ReasonForbidden, corev1alpha1.ReasonSuspended,
		corev1alpha1.ReasonRetriesEnded, corev1alpha1.ReasonRulesFailed:
		return true
	default:
		return false
	}
}

// actedOn says whether the hub has acted on the request made at requestedAt, or on
// a newer one.
func actedOn(last, requestedAt string) bool {
	if last == requestedAt {
		return true
	}
	seen, err := time.Parse(time.RFC3339Nano, last)
	if err != nil {
		return false // nothing acted on yet
	}
	asked, err := time.Parse(time.RFC3339Nano, requestedAt)
	return err == nil && !seen.Before(asked)
}

// sync asks for a sync.
func (h *hub) sync(ctx context.Context, request *corev1alpha1.SyncRequest) (*corev1alpha1.SyncRequest, error) {
	answer := &corev1alpha1.SyncRequest{}
	err := h.client.Post().Namespace(h.namespace).Resource("releases").Name(request.Name).SubResource("sync").
		Body(request).Do(ctx).Into(answer)
	if err != nil {
		return nil, explain(err, errNoRelease)
	}
	return answer, nil
}

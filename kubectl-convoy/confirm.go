// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Errors of a confirmation.
var (
	errNotHeld   = errors.New("its deletion is not held: there is nothing to confirm. Delete it first; if the hub refuses with DeletionHeld, confirm and delete again")
	errNoSuch    = errors.New("only Releases, and Clusters as in cluster/NAME, can be confirmed")
	errNotAll    = errors.New("not all were confirmed")
	errNoneGiven = errors.New("name at least one Release, or cluster/NAME")
)

func newConfirm(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm NAME...",
		Short: "Confirm deletions of Releases, or of Clusters with theirs, that are held",
		Long: `Confirm deletions of Releases, or of Clusters (cluster/NAME) with their Releases,
that the hub holds: more than its budget allows, or asked for by the garbage
collector. What is confirmed is what status.heldDeletion names now; it is told
before. Each can then be deleted once, within an hour, as long as nothing newer
is ordered. Needs the verb confirm on releases, or on clusters.`,
		Example: `  # Confirm, then delete
  kubectl convoy confirm shop && kubectl delete release shop

  # All that are held in the namespace
  kubectl convoy confirm $(kubectl get releases -o \
    jsonpath='{range .items[?(@.status.heldDeletion)]}{.metadata.name} {end}')`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errNoneGiven
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			var failed error
			for _, name := range args {
				if err := confirm(command.Context(), hub, streams, name); err != nil {
					fmt.Fprintf(streams.ErrOut, "%s: %v\n", name, err)
					failed = errNotAll
				}
			}
			return failed
		},
	}
}

// confirm one object and say what was confirmed.
func confirm(ctx context.Context, hub *hub, streams genericiooptions.IOStreams, arg string) error {
	kind, name, named := strings.Cut(arg, "/")
	if !named {
		kind, name = "release", arg
	}
	var resource string
	var held *corev1alpha1.HeldDeletion
	var missing error
	switch kind {
	case "release", "releases", "rel":
		var release corev1alpha1.Release
		resource, missing = "releases", errNoRelease
		if err := hub.get(ctx, resource, name, &release); err != nil {
			return explain(err, missing)
		}
		held = release.Status.HeldDeletion
	case "cluster", "clusters", "cvc":
		var cluster corev1alpha1.Cluster
		resource, missing = "clusters", errNoCluster
		if err := hub.get(ctx, resource, name, &cluster); err != nil {
			return explain(err, missing)
		}
		held = cluster.Status.HeldDeletion
	default:
		return errNoSuch
	}
	if held == nil {
		return errNotHeld
	}
	request := &corev1alpha1.ConfirmRequest{Sequence: held.Sequence, Digest: held.Digest}
	request.Name = name
	answer := &corev1alpha1.ConfirmRequest{}
	err := hub.client.Post().Namespace(hub.namespace).Resource(resource).Name(name).SubResource("confirm").Body(request).Do(ctx).Into(answer)
	if err != nil {
		return explain(err, missing)
	}
	until := ""
	if answer.ExpiresAt != nil {
		until = " until " + answer.ExpiresAt.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(streams.Out, "%s/%s may be deleted%s: order %d, asked for by %s (%s)\n",
		strings.TrimSuffix(resource, "s"), name, until, held.Sequence, held.By, held.Reason)
	return nil
}

// get reads one object.
func (h *hub) get(ctx context.Context, resource, name string, into runtime.Object) error {
	return h.client.Get().Namespace(h.namespace).Resource(resource).Name(name).Do(ctx).Into(into)
}

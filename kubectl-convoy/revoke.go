// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func newRevoke(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Refuse the agent of Cluster NAME from now on, until a new join",
		Long: `Refuse the agent of Cluster NAME from now on: its session ends, and a join token
that is out is void. What runs on the cluster stays. kubectl convoy join makes a
new token, with which an agent can join anew.`,
		Example: `  kubectl convoy revoke edge-1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			request, answer := &corev1alpha1.RevokeRequest{}, &corev1alpha1.RevokeRequest{}
			request.Name = args[0]
			err = hub.client.Post().Namespace(hub.namespace).Resource("clusters").Name(args[0]).SubResource("revoke").
				Body(request).Do(command.Context()).Into(answer)
			if err != nil {
				return fmt.Errorf("revoking the agent of Cluster %s/%s: %w", hub.namespace, args[0], explain(err, errNoCluster))
			}
			since := ""
			if answer.RevokedAt != nil {
				since = " since " + answer.RevokedAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(streams.Out, "cluster/%s refuses its agent%s; what runs there stays\n", args[0], since)
			return nil
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/install"
	"kumodo.io/convoy/pkg/tunnel"
)

// maxTTL of a token; the hub refuses more.
const maxTTL = time.Hour

// Errors of a join.
var (
	errNoImage   = errors.New("no image for the agent: pass --image, or start the hub with --agent-image")
	errNoGateway = errors.New("the hub does not know under which address agents reach it: start it with --gateway-url=wss://HOST")
	errOutput    = errors.New("--output is yaml or values")
)

// What join prints.
const (
	outputYAML   = "yaml"
	outputValues = "values"
)

type join struct {
	streams    genericiooptions.IOStreams
	create     bool
	image      string
	ttl        time.Duration
	profile    string
	namespaces []string
	output     string
}

func newJoin(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &join{streams: streams}
	command := &cobra.Command{
		Use:   "join NAME",
		Short: "Print the YAML that installs an agent and joins it as Cluster NAME",
		Long: `Print the YAML that installs an agent and joins it as Cluster NAME.

The token in it is made here and is good for one agent, once. The hub learns only
its public half, so that no secret is in a request, an audit log or the hub's etcd.

With profile platform the agent is bound to cluster-admin in its cluster. With profile
shared it gets the role admin in the namespaces that --namespaces names, which have
to exist, and can apply nothing anywhere else and no kind without a namespace.`,
		Example: `  # Make Cluster edge-1 on the hub and join the cluster of context edge
  kubectl convoy join edge-1 --create | kubectl --context edge apply -f -

  # The same for two namespaces of a cluster that is shared with others
  kubectl convoy join edge-1 --create --profile shared --namespaces shop,shop-jobs |
    kubectl --context edge apply -f -

  # With the chart
  kubectl convoy join edge-1 --create --output values > edge-1.yaml
  helm --kube-context edge install convoy-agent charts/convoy-agent -n convoy-agent -f edge-1.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := verb.validate(); err != nil {
				return err
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			return verb.run(command.Context(), hub, args[0])
		},
	}
	command.Flags().BoolVar(&verb.create, "create", false, "make the Cluster on the hub if there is none")
	command.Flags().StringVar(&verb.image, "image", "", "image of the agent (default: the hub's --agent-image)")
	command.Flags().DurationVar(&verb.ttl, "ttl", maxTTL, "how long the token can be used; at most 1h")
	command.Flags().StringVar(&verb.profile, "profile", install.ProfilePlatform, "what the agent may do in its cluster: platform (everything) or shared (admin of --namespaces)")
	command.Flags().StringSliceVar(&verb.namespaces, "namespaces", nil, "with --profile shared: the namespaces of the agent's cluster that it may apply to")
	command.Flags().StringVarP(&verb.output, "output", "o", outputYAML, "what to print: yaml (to apply) or values (for the chart convoy-agent)")
	return command
}

// validate names what is wrong before a token is made.
func (j *join) validate() error {
	if j.output != outputYAML && j.output != outputValues {
		return fmt.Errorf("%w, not %q", errOutput, j.output)
	}
	if err := install.CheckProfile(j.profile, j.namespaces); err != nil {
		return fmt.Errorf("--profile and --namespaces: %w", err)
	}
	return nil
}

func (j *join) run(ctx context.Context, hub *hub, name string) error {
	if j.create {
		if err := hub.createCluster(ctx, name); err != nil {
			return err
		}
	}
	seed, err := tunnel.NewSeed()
	if err != nil {
		return fmt.Errorf("making the token: %w", err)
	}
	answer, err := hub.join(ctx, name, corev1alpha1.JoinRequestSpec{
		PublicKey: base64.StdEncoding.EncodeToString(tunnel.Token{Seed: seed}.PublicKey()),
		TTL:       &metav1.Duration{Duration: j.ttl},
	})
	if errors.Is(err, errNoCluster) {
		return fmt.Errorf("there is no Cluster %q in namespace %q: add --create to make it, or name its namespace with -n: %w", name, hub.namespace, err)
	}
	if err != nil {
		return fmt.Errorf("asking the hub to let Cluster %s/%s join: %w", hub.namespace, name, err)
	}
	agent, err := j.agent(hub.namespace, name, answer.Status, seed)
	if err != nil {
		return err
	}
	write := agent.YAML
	if j.output == outputValues {
		write = agent.Values
	}
	text, err := write()
	if err != nil {
		return err
	}
	if _, err := j.streams.Out.Write(text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fmt.Fprintf(j.streams.ErrOut, "The token can be used once, until %s. It joins as Cluster %s/%s.\n", agent.ExpiresAt, hub.namespace, name)
	return nil
}

// agent puts together what the hub answered and what only we know.
func (j *join) agent(namespace, name string, answer corev1alpha1.JoinRequestStatus, seed []byte) (install.Agent, error) {
	image := j.image
	if image == "" {
		image = answer.AgentImage
	}
	switch {
	case image == "":
		return install.Agent{}, errNoImage
	case answer.GatewayURL == "":
		return install.Agent{}, errNoGateway
	}
	token, err := tunnel.EncodeToken(tunnel.Token{
		Gateway: answer.GatewayURL, Hub: answer.HubID, ClusterUID: answer.ClusterUID, CAPin: answer.CAPin, Seed: seed,
	})
	if err != nil {
		return install.Agent{}, fmt.Errorf("the hub's answer makes no token: %w", err)
	}
	agent := install.Agent{
		ClusterNamespace: namespace, ClusterName: name,
		HubID: answer.HubID, Image: image, Token: token,
		Profile: j.profile, Namespaces: j.namespaces,
	}
	if answer.ExpiresAt != nil {
		agent.ExpiresAt = install.ExpiresAt(answer.ExpiresAt.Time)
	}
	return agent, nil
}

// join registers the public half of a token.
func (h *hub) join(ctx context.Context, name string, spec corev1alpha1.JoinRequestSpec) (*corev1alpha1.JoinRequest, error) {
	answer := &corev1alpha1.JoinRequest{}
	err := h.client.Post().Namespace(h.namespace).Resource("clusters").Name(name).SubResource("join").
		Body(&corev1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}).
		Do(ctx).Into(answer)
	if err != nil {
		return nil, explain(err, errNoCluster)
	}
	return answer, nil
}

// createCluster makes a Cluster with defaults; one that is there already is left
// as it is.
func (h *hub) createCluster(ctx context.Context, name string) error {
	err := h.client.Post().Namespace(h.namespace).Resource("clusters").
		Body(&corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}).
		Do(ctx).Error()
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("making Cluster %s/%s: %w", h.namespace, name, explain(err, errNotInstalled))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/keyset"
)

// systemNamespace is where the hub and its keys are.
const systemNamespace = "convoy-system"

// Errors about keys.
var (
	errNotLoaded = errors.New("the hub still runs with the keys of before: restart it first " +
		"(kubectl -n convoy-system rollout restart deployment convoy-hub)")
	errInUse = errors.New("the key is still needed")
	errNoSet = errors.New("there is no such Secret: is the hub installed?")
)

// secrets of the hub's namespace.
func newSecrets(flags *genericclioptions.ConfigFlags) (typedcorev1.SecretInterface, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return client.CoreV1().Secrets(systemNamespace), nil
}

type keys struct {
	streams genericiooptions.IOStreams
	secrets typedcorev1.SecretInterface
	hub     *hub
	force   bool
}

func newKeys(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &keys{streams: streams}
	connect := func(*cobra.Command, []string) (err error) {
		if verb.hub, err = newHub(flags); err != nil {
			return err
		}
		verb.secrets, err = newSecrets(flags)
		return err
	}
	command := &cobra.Command{
		Use:   "keys",
		Short: "List, rotate and retire the hub's keys",
		Long: `List the hub's keys: those in its Secrets, whether the hub has loaded them, and
what still needs the old ones.

A rotated key is used for everything new once the hub was restarted. The one before
stays accepted until it is retired, so that neither an agent that was away nor a hub
restored from an older backup is locked out.`,
		Example: `  kubectl convoy keys
  kubectl convoy keys rotate convoy-order-key
  kubectl -n convoy-system rollout restart deployment convoy-hub
  kubectl convoy keys retire convoy-order-key 0123456789abcdef`,
		Args:    cobra.NoArgs,
		PreRunE: connect,
		RunE:    func(command *cobra.Command, _ []string) error { return verb.list(command.Context()) },
	}
	rotating := []string{keyset.HubCA, keyset.OrderKey, keyset.SealingKey}
	command.AddCommand(&cobra.Command{
		Use:       "rotate SET",
		Short:     "Make a new current key; the one before stays accepted",
		Long:      "Make a new current key; the one before stays accepted. SET is " + strings.Join(rotating, ", ") + ".",
		Args:      cobra.ExactArgs(1),
		ValidArgs: rotating,
		PreRunE:   connect,
		RunE:      func(command *cobra.Command, args []string) error { return verb.rotate(command.Context(), args[0]) },
	})
	retire := &cobra.Command{
		Use:   "retire SET ID",
		Short: "Stop accepting an old key that nothing needs any more",
		Long: `Stop accepting an old key that nothing needs any more, once the hub is restarted.
What still needs it is said, and nothing is done. With --force it is retired
nevertheless: agents that know no other hub CA or order key have to join again.`,
		Args:      cobra.ExactArgs(2),
		ValidArgs: rotating,
		PreRunE:   connect,
		RunE: func(command *cobra.Command, args []string) error {
			return verb.retire(command.Context(), args[0], args[1])
		},
	}
	retire.Flags().BoolVar(&verb.force, "force", false, "retire a key that is still needed")
	command.AddCommand(retire)
	return command
}

// get reads a set.
func (k *keys) get(ctx context.Context, set string) (*corev1.Secret, error) {
	if !slices.Contains(keyset.Names(), set) {
		return nil, fmt.Errorf("%w, one of %s: %q", keyset.ErrUnknownSet, strings.Join(keyset.Names(), ", "), set)
	}
	secret, err := k.secrets.Get(ctx, set, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s/%s: %w", systemNamespace, set, errNoSet)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", systemNamespace, set, err)
	}
	return secret, nil
}

// loaded is what the hub says of a key; nil: it has not loaded it.
func loaded(hub *corev1alpha1.Hub, set, id string) *corev1alpha1.HubKey {
	at := slices.IndexFunc(hub.Status.Keys, func(key corev1alpha1.HubKey) bool { return key.Set == set && key.ID == id })
	if at < 0 {
		return nil
	}
	return &hub.Status.Keys[at]
}

func (k *keys) list(ctx context.Context) error {
	about, err := k.hub.about(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(k.streams.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SET\tID\tSTATE\tLOADED\tIN-USE\tEXPIRES")
	for _, set := range keyset.Names() {
		secret, err := k.get(ctx, set)
		if err != nil {
			return err
		}
		entries, err := keyset.List(set, secret.Data)
		if err != nil {
			return fmt.Errorf("reading the keys: %w", err)
		}
		for _, entry := range entries {
			if set == keyset.MACKey {
				continue // never rotated; the hub does not say its name
			}
			state, isLoaded, inUse, expires := "current", "no", "-", "-"
			if key := loaded(about, set, entry.ID); key != nil {
				isLoaded = "yes"
				if key.Old {
					inUse = fmt.Sprint(key.InUse)
				}
			}
			if entry.Old {
				state = "old"
			}
			if !entry.NotAfter.IsZero() {
				expires = entry.NotAfter.UTC().Format(time.DateOnly)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", set, entry.ID, state, isLoaded, inUse, expires)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (k *keys) rotate(ctx context.Context, set string) error {
	secret, err := k.get(ctx, set)
	if err != nil {
		return err
	}
	data, entry, err := keyset.Rotate(set, secret.Data, time.Now())
	if err != nil {
		return fmt.Errorf("rotating: %w", err)
	}
	secret.Data = data
	if _, err := k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("storing the new key: %w", err)
	}
	fmt.Fprintf(k.streams.Out, "%s has the new key %s. It is used from the hub's next start on:\n  kubectl -n %s rollout restart deployment convoy-hub\n", set, entry.ID, systemNamespace)
	return nil
}

func (k *keys) retire(ctx context.Context, set, id string) error {
	secret, err := k.get(ctx, set)
	if err != nil {
		return err
	}
	data, err := keyset.Retire(set, secret.Data, id)
	if err != nil {
		return fmt.Errorf("retiring: %w", err)
	}
	if !k.force {
		if err := k.unneeded(ctx, set, id, secret.Data); err != nil {
			return fmt.Errorf("retiring %s of %s: %w", id, set, err)
		}
	}
	secret.Data = data
	if _, err := k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("storing the keys that are left: %w", err)
	}
	fmt.Fprintf(k.streams.Out, "%s is not accepted from the hub's next start on:\n  kubectl -n %s rollout restart deployment convoy-hub\n", id, systemNamespace)
	return nil
}

// unneeded asks the hub whether anything still needs an old key.
func (k *keys) unneeded(ctx context.Context, set, id string, data map[string][]byte) error {
	entries, err := keyset.List(set, data)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what for
	}
	about, err := k.hub.about(ctx)
	if err != nil {
		return err
	}
	if current := loaded(about, set, entries[0].ID); current == nil || current.Old {
		return errNotLoaded
	}
	key := loaded(about, set, id)
	if key == nil || key.InUse == 0 {
		return nil
	}
	what := map[string]string{
		keyset.HubCA: "Clusters whose agent has not been here since the hub started with the new CA (kubectl get clusters -A)",
		keyset.OrderKey: "Releases whose order it signed: orders are signed anew in the minutes after the hub's start while their agent is there, " +
			"in manual mode with a sync; status.order.keyID tells which",
		keyset.SealingKey: "sealed layers that it encrypted: they are sealed anew after the hub's start, and its log says what could not be read",
	}[set]
	return fmt.Errorf("%w by %d %s; --force retires it nevertheless", errInUse, key.InUse, what)
}

// about asks the hub what it is.
func (h *hub) about(ctx context.Context) (*corev1alpha1.Hub, error) {
	about := &corev1alpha1.Hub{}
	if err := h.client.Get().Resource("hubs").Name(corev1alpha1.HubName).Do(ctx).Into(about); err != nil {
		return nil, fmt.Errorf("asking the hub about itself: %w", explain(err, errNotInstalled))
	}
	return about, nil
}

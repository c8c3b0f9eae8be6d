// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/keyset"
)

// What one request carries, unless a single piece is larger: an API server reads
// 3 MiB, and base64 adds a third.
const (
	restoreBytes  = 1 << 20
	restorePieces = 1000
)

// Errors of a restore.
var (
	errOtherKeys = errors.New("it holds another key: --replace-keys writes over it, and what was signed or sealed with it is lost")
	errKeyless   = errors.New("the backup was written without keys: put the hub's Secrets back first")
	errOtherHub  = errors.New("the hub runs with other keys than those of the backup: restore them first " +
		"(kubectl convoy restore FILE --keys), then start the hub")
)

type restore struct {
	streams genericiooptions.IOStreams
	hub     *hub
	client  kubernetes.Interface
	keys    bool
	replace bool
}

func newRestore(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &restore{streams: streams}
	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring back what a backup holds: first --keys, then all else",
		Long: `Bring back what a backup holds, in two steps: with --keys the hub's keys, before the
hub is started; without, all else, into a hub that runs with these keys and has
nothing yet. The hub ends after that, and its Deployment starts it again.

What agents have applied since the backup was made stays as it is: they give their
orders back to the hub, which adopts them. A restore that was broken off may be run
again.`,
		Example: `  kubectl convoy restore convoy-2026-01-31.backup --keys
  kubectl apply -f manifests/hub
  kubectl convoy restore convoy-2026-01-31.backup`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			if verb.hub, err = newHub(flags); err != nil {
				return err
			}
			config, err := flags.ToRESTConfig()
			if err != nil {
				return fmt.Errorf("reading the kubeconfig: %w", err)
			}
			if verb.client, err = kubernetes.NewForConfig(config); err != nil {
				return fmt.Errorf("building the client: %w", err)
			}
			return verb.run(command.Context(), args[0])
		},
	}
	command.Flags().BoolVar(&verb.keys, "keys", false, "restore the hub's keys, and nothing else")
	command.Flags().BoolVar(&verb.replace, "replace-keys", false, "with --keys: write over keys that are there")
	return command
}

// run reads the whole file before anything is written: half a backup is none.
func (r *restore) run(ctx context.Context, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	secrets := map[string]map[string][]byte{}
	head, digest, err := readArchive(file, func(_ archiveHead, line archiveLine) error {
		if line.Secret != nil {
			secrets[line.Secret.Name] = line.Secret.Data
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if r.keys {
		return r.putKeys(ctx, secrets)
	}
	about, err := r.hub.about(ctx)
	if err != nil {
		return err
	}
	if about.Status.HubID != head.HubID {
		return fmt.Errorf("the hub is %s, the backup is of %s: %w", about.Status.HubID, head.HubID, errOtherHub)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return r.putPieces(ctx, file, digest)
}

// putKeys writes the Secrets, all or none that differ.
func (r *restore) putKeys(ctx context.Context, secrets map[string]map[string][]byte) error {
	if len(secrets) == 0 {
		return errKeyless
	}
	_, err := r.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", systemNamespace, err)
	}
	client := r.client.CoreV1().Secrets(systemNamespace)
	found := map[string]*corev1.Secret{}
	same := 0
	for _, name := range keyset.Names() {
		secret, err := client.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading Secret %s/%s: %w", systemNamespace, name, err)
		}
		found[name] = secret
		equal := maps.EqualFunc(secret.Data, secrets[name], slices.Equal[[]byte])
		if equal {
			same++
		}
		if len(secret.Data) > 0 && !r.replace && !equal {
			return fmt.Errorf("secret %s/%s: %w", systemNamespace, name, errOtherKeys)
		}
	}
	if same == len(keyset.Names()) {
		fmt.Fprintln(r.streams.Out, "The hub's keys are those of the backup already.")
		return nil
	}
	for _, name := range keyset.Names() {
		if _, err := keyset.List(name, secrets[name]); err != nil {
			return fmt.Errorf("the backup's %s: %w", name, err)
		}
		secret := found[name]
		if secret == nil {
			_, err = client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: secrets[name]}, metav1.CreateOptions{})
		} else {
			secret.Data = secrets[name]
			_, err = client.Update(ctx, secret, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("writing Secret %s/%s: %w", systemNamespace, name, err)
		}
	}
	fmt.Fprintf(r.streams.Out, "The hub's keys are restored. Start the hub (or restart it), and restore the rest.\n")
	return nil
}

// putPieces sends the pieces to the hub, in their order.
func (r *restore) putPieces(ctx context.Context, file io.Reader, digest string) error {
	var batch []corev1alpha1.BackupPiece
	size, count := 0, 0
	send := func(hubID string, last bool) error {
		request := &corev1alpha1.RestoreRequest{
			ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.HubName}, Backup: digest, HubID: hubID, Pieces: batch, Last: last,
		}
		err := r.hub.client.Post().Resource("hubs").Name(corev1alpha1.HubName).SubResource("restore").Body(request).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("restoring (it may be run again): %w", explain(err, errNotInstalled))
		}
		count += len(batch)
		batch, size = nil, 0
		return nil
	}
	head, _, err := readArchive(file, func(head archiveHead, line archiveLine) error {
		if line.Piece == nil {
			return nil
		}
		length := len(line.Piece.Data) + len(line.Piece.Name)
		if len(batch) > 0 && (size+length > restoreBytes || len(batch) >= restorePieces) {
			if err := send(head.HubID, false); err != nil {
				return err
			}
		}
		batch, size = append(batch, *line.Piece), size+length
		return nil
	})
	if err != nil {
		return err
	}
	if err := send(head.HubID, true); err != nil {
		return err
	}
	fmt.Fprintf(r.streams.Out, "%d pieces are restored. The hub starts again on them.\n", count)
	return nil
}

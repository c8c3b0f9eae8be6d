// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/keyset"
)

type backup struct {
	streams  genericiooptions.IOStreams
	hub      *hub
	secrets  typedcorev1.SecretInterface
	keyless  bool
	attempts int
}

func newBackup(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &backup{streams: streams, attempts: 5}
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all that the hub has stored, and its keys, into FILE",
		Long: `Write all that the hub has stored, and its keys, into FILE (mode 0600).

Whoever has FILE can be the hub: guard it as you guard the hub's Secrets. With
--without-keys it holds no key, and the Secrets of convoy-system have to be kept
elsewhere: without them a backup cannot be restored.`,
		Example: `  kubectl convoy backup convoy-$(date +%F).backup`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			if verb.hub, err = newHub(flags); err != nil {
				return err
			}
			if verb.secrets, err = newSecrets(flags); err != nil {
				return err
			}
			return verb.run(command.Context(), args[0])
		},
	}
	command.Flags().BoolVar(&verb.keyless, "without-keys", false, "leave the hub's keys out")
	return command
}

// errFileThere: the only copy of a hub may be what would be written over.
var errFileThere = errors.New("the file is there already, and a backup is never written over another: name another file, or move that one away")

// run writes beside FILE and names it FILE when it is whole.
func (b *backup) run(ctx context.Context, path string) (err error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s: %w", path, errFileThere)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("looking for the file: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("making the file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
		}
	}()
	pieces, err := b.write(ctx, temp)
	if err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	info, err := temp.Stat()
	if err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	// A link, since a rename would write over an older backup.
	switch err := os.Link(temp.Name(), path); {
	case errors.Is(err, fs.ErrExist): // made meanwhile
		return fmt.Errorf("%s: %w", path, errFileThere)
	case err != nil:
		return fmt.Errorf("naming the file: %w", err)
	}
	if err := os.Remove(temp.Name()); err != nil {
		return fmt.Errorf("naming the file: %w", err)
	}
	if err := temp.Close(); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	fmt.Fprintf(b.streams.Out, "%s: %d pieces, %d bytes\n", path, pieces, info.Size())
	return nil
}

func (b *backup) write(ctx context.Context, w io.Writer) (int64, error) {
	about, err := b.hub.about(ctx)
	if err != nil {
		return 0, err
	}
	archive, err := newArchiveWriter(w, archiveHead{HubID: about.Status.HubID, Version: about.Status.Version, At: time.Now().UTC()})
	if err != nil {
		return 0, err
	}
	if !b.keyless {
		for _, name := range keyset.Names() {
			secret, err := b.secrets.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return 0, fmt.Errorf("reading Secret %s/%s: %w", systemNamespace, name, err)
			}
			if err := archive.secret(name, secret.Data); err != nil {
				return 0, err
			}
		}
	}
	for cursor := ""; ; {
		answer, err := b.next(ctx, cursor)
		if err != nil {
			return 0, err
		}
		for _, piece := range answer.Pieces {
			if err := archive.piece(piece); err != nil {
				return 0, err
			}
		}
		if answer.Next == "" {
			return archive.pieces, archive.end()
		}
		cursor = answer.Next
	}
}

// next asks for the pieces at a cursor, again when the hub was away for a moment:
// the cursor is all that it has to know.
func (b *backup) next(ctx context.Context, cursor string) (*corev1alpha1.BackupRequest, error) {
	var err error
	for range b.attempts {
		answer := &corev1alpha1.BackupRequest{}
		err = b.hub.client.Post().Resource("hubs").Name(corev1alpha1.HubName).SubResource("backup").
			Body(&corev1alpha1.BackupRequest{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.HubName}, Cursor: cursor}).
			Do(ctx).Into(answer)
		if err == nil {
			return answer, nil
		}
		if !away(err) || pause(ctx) != nil {
			break
		}
	}
	return nil, fmt.Errorf("reading from the hub: %w", explain(err, errNotInstalled))
}

// away says that asking again may help.
func away(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// retryPause is how long to wait before asking again.
const retryPause = 2 * time.Second

func pause(ctx context.Context) error {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

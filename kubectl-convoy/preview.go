// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
)

// Errors of a preview's command line.
var (
	errNothingToPreview = errors.New("give the NAME of a Release, or a file with -f")
	errRevisionOfFile   = errors.New("--revision is for a Release of the hub: a file says it in spec.source.revision")
)

type previewVerb struct {
	streams  genericiooptions.IOStreams
	file     string
	revision string
	output   string
}

func newPreview(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	verb := &previewVerb{streams: streams}
	command := &cobra.Command{
		Use:   "preview [NAME]",
		Short: "Show what a Release renders to, without applying it",
		Long: `Show what a Release renders to, in the order in which it is applied: as the hub has
it, at another revision of its source, or as a file says. The hub fetches and renders;
nothing is stored or applied. Secret values are not shown: in their place stand marks
that change when the value does.`,
		Example: `  # What Release shop renders to now
  kubectl convoy preview shop

  # ... and at a branch
  kubectl convoy preview shop --revision feature-x -o names

  # ... and with a change that is not made yet
  kubectl convoy preview -f shop.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := objects.Check(verb.output); err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			hub, err := newHub(flags)
			if err != nil {
				return err
			}
			return verb.run(command.Context(), hub, name, *flags.Namespace != "")
		},
	}
	command.Flags().StringVarP(&verb.file, "filename", "f", "", "file with a Release that need not be on the hub; - is standard input")
	command.Flags().StringVar(&verb.revision, "revision", "", "revision of the source to render instead of the Release's")
	command.Flags().StringVarP(&verb.output, "output", "o", objects.YAML, "yaml, json or names")
	return command
}

func (p *previewVerb) run(ctx context.Context, hub *hub, name string, forced bool) error {
	preview, err := p.ask(ctx, hub, name, forced)
	if err != nil {
		return err
	}
	list := make([]objects.Object, 0, len(preview.Objects))
	for _, raw := range preview.Objects {
		object, err := objects.Read(raw.Raw)
		if err != nil {
			return fmt.Errorf("reading the answer of the hub: %w", err)
		}
		list = append(list, object)
	}
	for _, warning := range preview.Warnings {
		fmt.Fprintln(p.streams.ErrOut, "warning:", warning)
	}
	fmt.Fprintf(p.streams.ErrOut, "release/%s %s of %s: %d objects\n", preview.Name, preview.RenderRef, preview.SourceRevision, preview.Count)
	return objects.Print(p.streams.Out, p.output, list)
}

// ask gets the preview of the name, or of the file.
func (p *previewVerb) ask(ctx context.Context, hub *hub, name string, forced bool) (*corev1alpha1.Preview, error) {
	if p.file == "" {
		if name == "" {
			return nil, errNothingToPreview
		}
		preview, err := hub.preview(ctx, name, p.revision)
		if errors.Is(err, errNoRelease) {
			return nil, fmt.Errorf("there is no Release %q in namespace %q: -f previews one of a file: %w", name, hub.namespace, err)
		}
		return preview, err
	}
	if p.revision != "" {
		return nil, errRevisionOfFile
	}
	release, err := readRelease(p.streams.In, p.file, name, hub.namespace, forced)
	if err != nil {
		return nil, fmt.Errorf("reading the Release: %w", err)
	}
	return hub.previewOf(ctx, release)
}

// preview asks for the render of a Release as the hub has it.
func (h *hub) preview(ctx context.Context, name, revision string) (*corev1alpha1.Preview, error) {
	request := h.client.Get().Namespace(h.namespace).Resource("releases").Name(name).SubResource("preview")
	if revision != "" {
		request = request.Param("revision", revision)
	}
	preview := &corev1alpha1.Preview{}
	if err := request.Do(ctx).Into(preview); err != nil {
		return nil, explainPreview(err)
	}
	return preview, nil
}

// previewOf asks for the render of a Release that the hub need not have.
func (h *hub) previewOf(ctx context.Context, release *corev1alpha1.Release) (*corev1alpha1.Preview, error) {
	preview := &corev1alpha1.Preview{}
	err := h.client.Post().Namespace(release.Namespace).Resource("releases").Name(release.Name).SubResource("preview").
		Param("fieldValidation", "Strict").Body(release).Do(ctx).Into(preview)
	if err != nil {
		return nil, explainPreview(err)
	}
	return preview, nil
}

// explainPreview is explain for a request that takes as long as a render: who ends it
// for its length, the observer or an API server, did answer.
func explainPreview(err error) error {
	if apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return fmt.Errorf("%w: %w", errTooLong, err)
	}
	return explain(err, errNoRelease)
}

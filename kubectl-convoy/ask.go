// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/kubectl-convoy/objects"
)

// outputTable is the form of answers for people.
const outputTable = ""

var errAnswerForm = errors.New("unknown output: json, yaml, or none for a table")

// ask gets a subresource of a Release.
func (h *hub) ask(ctx context.Context, name, question string, into runtime.Object) error {
	err := h.client.Get().Namespace(h.namespace).Resource("releases").Name(name).SubResource(question).Do(ctx).Into(into)
	if err = explainPreview(err); errors.Is(err, errNoRelease) {
		return fmt.Errorf("there is no Release %q in namespace %q: %w", name, h.namespace, err)
	}
	return err
}

// checkOutput before anything is asked.
func checkOutput(format string) error {
	switch format {
	case outputTable, objects.JSON, objects.YAML:
		return nil
	}
	return fmt.Errorf("%w, not %q", errAnswerForm, format)
}

// printAnswer writes an answer as it came, with its kind, which the client takes off.
func printAnswer(w io.Writer, format, kind string, answer runtime.Object) error {
	answer.GetObjectKind().SetGroupVersionKind(corev1alpha1.SchemeGroupVersion.WithKind(kind))
	text, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	text = append(text, '\n')
	if format == objects.YAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
	}
	_, err = w.Write(text)
	return err
}

// told says what an answer about a cluster is worth.
func told(w io.Writer, name string, o *corev1alpha1.Observation, now time.Time) {
	switch {
	case o.Live:
		fmt.Fprintf(w, "release/%s live, order %d\n", name, o.Sequence)
	case o.At == nil:
		fmt.Fprintf(w, "release/%s NOT LIVE: %s; nothing is known from before\n", name, o.Message)
	default:
		fmt.Fprintf(w, "release/%s NOT LIVE: %s; as it was known %s ago, order %d\n", name, o.Message, age(o.At, now), o.Sequence)
	}
}

// age of a time, as kubectl shows it.
func age(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Data reads a Secret of the namespace that is no record and no layer; nil when it
// is not there.
func (s *Secrets) Data(ctx context.Context, name string) (map[string][]byte, error) {
	in, err := s.client.get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return in.Data, nil
}

// SetData writes keys of such a Secret; keys that are not named are left alone. It
// is made when it is not there, with kind as the value of the label
// convoy.kumodo.io/state.
func (s *Secrets) SetData(ctx context.Context, name, kind string, data map[string][]byte) error {
	err := s.client.patchData(ctx, name, data)
	if apierrors.IsNotFound(err) {
		err = s.client.create(ctx, &secret{
			Type: typeOpaque, Data: data,
			Metadata: secretMeta{Name: name, Labels: map[string]string{labelState: kind}},
		})
	}
	if err != nil {
		return fmt.Errorf("write secret %s: %w", name, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"

	"kumodo.io/convoy/hub/render"
)

func (h *hub) startRenderer(context.Context) error {
	made, err := render.New(render.Options{Objects: h.objects, Sealed: h.sealed, MACKey: h.keys.MACKey, Registerer: h.registry})
	if err != nil {
		return fmt.Errorf("make the renderer: %w", err)
	}
	h.renderer = made
	h.life.start("render", made.Run)
	return nil
}

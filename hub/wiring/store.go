// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/file"
	"kumodo.io/convoy/hub/store/oci"
)

// openBackend opens what keeps the renders: a registry if there is one, else a folder.
func (h *hub) openBackend() (store.Backend, error) {
	at := h.config.RenderStore
	if at.URL == "" {
		return file.New(h.config.StoreDir)
	}
	return oci.New(oci.Options{
		URL: at.URL, PlainHTTP: at.PlainHTTP, DockerConfig: at.DockerConfig, CAFile: at.CAFile,
		Dir: h.config.StoreDir, Registerer: h.registry,
	})
}

// ExportName is the first argument of the program that writes renders as an OCI layout.
const ExportName = "export-renders"

// errExportUsage says how an export is called.
var errExportUsage = errors.New("usage: convoy-hub " + ExportName + " --data-dir DIR --to DIR")

// Export writes the renders in a hub's data directory as an OCI layout. The hub may
// run meanwhile.
func Export(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet(ExportName, pflag.ContinueOnError)
	flags.SetOutput(out)
	data := flags.String("data-dir", "", "The hub's data directory.")
	to := flags.String("to", "", "Folder that gets the OCI layout; made if need be. What is there already is kept.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" || *to == "" || flags.NArg() > 0 {
		return errExportUsage
	}
	from, err := file.Beside(filepath.Join(*data, "renders"))
	if err != nil {
		return err
	}
	done, err := oci.Export(ctx, from, *to)
	fmt.Fprintf(out, "%d renders, %d bytes\n", done.Renders, done.Bytes)
	return err
}

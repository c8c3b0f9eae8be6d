// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

var errByHand = errors.New("a render worker is started by the command render, not by hand")

// confine puts the calling process under limits. It never gets out of them again.
func confine(args []string) error {
	if len(args) != 1 {
		return errByHand
	}
	var limits Limits
	if err := json.Unmarshal([]byte(args[0]), &limits); err != nil {
		return fmt.Errorf("%w: %w", errByHand, err)
	}
	debug.SetMaxStack(maxStackBytes)
	if limits.HeapBytes > 0 {
		debug.SetMemoryLimit(limits.HeapBytes)
		debug.SetGCPercent(workerGCPercent)
	}
	if limits.ResidentBytes > 0 {
		go watchMemory(limits.ResidentBytes) // ends with the process
	}
	if limits.AddressBytes > 0 && !raceBuild {
		if err := limitAddress(limits.AddressBytes); err != nil {
			return err
		}
	}
	if limits.CPU > 0 {
		return limitCPU(limits.CPU)
	}
	return nil
}

// watchMemory ends the process when it has more in memory than it may have.
func watchMemory(most int64) {
	look := time.NewTicker(watchEvery)
	defer look.Stop()
	for range look.C {
		if resident() > most {
			os.Exit(exitMemory) //nolint:forbidigo // a worker at its limit cannot go back to main
		}
	}
}

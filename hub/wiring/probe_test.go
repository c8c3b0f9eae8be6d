// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/hub/controller"
)

func TestMetricsOfTheControllersAreServedBesideTheOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan struct{}, 1)
	reconciler := reconcile.TypedFunc[types.NamespacedName](func(context.Context, types.NamespacedName) (reconcile.Result, error) {
		select {
		case done <- struct{}{}:
		default:
		}
		return reconcile.Result{}, nil
	})
	ended := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() {
		keys := func() []types.NamespacedName { return []types.NamespacedName{{Namespace: "n", Name: "x"}} }
		ended <- controller.Run(running, &controller.Feed{}, reconciler, controller.Options{Name: "probed", Workers: 1, Keys: keys})
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("nothing was reconciled")
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	own := prometheus.NewRegistry()
	own.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "convoy_probe_total", Help: "Ours."}))
	families, err := gathered(own).Gather()
	if err != nil {
		t.Fatalf("the registries do not go together: %v", err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
	}
	all := " " + strings.Join(names, " ") + " "
	for _, want := range []string{"convoy_probe_total", "go_goroutines", "controller_runtime_reconcile_total", "workqueue_adds_total"} {
		if !strings.Contains(all, " "+want+" ") {
			t.Errorf("%s is not served", want)
		}
	}
}

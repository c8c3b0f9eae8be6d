// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodOptions say which Deployment to run and what stands for its image.
type PodOptions struct {
	// Namespace and Deployment name the object on the plane. It must have one
	// replica, one container and no init containers.
	Namespace, Deployment string
	// Images maps the names of images to programs of this machine.
	Images map[string]string
	// Files are what the image has beside its program: path in the image to
	// path on this machine. It has nothing else, no shell and no /tmp.
	Files map[string]string
	// User is the USER of the image, which counts where the manifest does not
	// say runAsUser.
	User int64
	// Network is the path of the network namespace that the container runs in,
	// as in /run/netns/NAME; empty means that of this process.
	Network string
	// Deviations from the manifest.
	Deviations Deviations
}

// Pod is the running container of a Deployment. It sees arguments and
// environment of the manifest and, in a root of its own, the program, the
// volumes and a ServiceAccount token that is renewed. It is process 1 of its
// process namespace. User, groups, dropped capabilities, no_new_privs and a
// read-only root are as the securityContext says; resource limits, seccomp
// profiles and probes are not acted on, and the network is that of the
// machine unless PodOptions.Network names another one. It is started again when it ends, and follows the Deployment: when
// its Pod is deleted it stops, and starts again for the next one.
type Pod struct {
	// Static after RunPod.
	plane  *Plane
	opts   PodOptions
	dir    string
	cancel context.CancelFunc
	done   chan struct{}

	// mu guards what follows.
	mu       sync.Mutex
	object   *corev1.Pod
	process  *Process
	args     []string
	env      []string
	restarts int
	lastErr  error
	changed  chan struct{} // closed and replaced at every change
}

// RunPod runs the container of a Deployment and returns when it has been
// started for the first time. ctx bounds that wait only; the container runs
// until Stop or the end of the plane.
func (p *Plane) RunPod(ctx context.Context, opts PodOptions) (*Pod, error) {
	what := opts.Namespace + "/" + opts.Deployment
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("run pod of %s: namespaces as another user than root: %w", what, ErrUnsupported)
	}
	deployment, err := p.client.AppsV1().Deployments(opts.Namespace).Get(ctx, opts.Deployment, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("run pod of %s: %w", what, err)
	}
	if r := deployment.Spec.Replicas; r != nil && *r > 1 {
		return nil, fmt.Errorf("run pod of %s: %d replicas: %w", what, *r, ErrUnsupported)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("run pod of %s: %w", what, err)
	}
	// What can never work is said now, before a Pod is waited for.
	dry := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: opts.Namespace}, Spec: deployment.Spec.Template.Spec}
	if _, err := checkPod(dry, opts); err != nil {
		return nil, fmt.Errorf("run pod of %s: %w", what, err)
	}
	dir := filepath.Join(p.sup.Dir(), "pods", opts.Namespace, opts.Deployment)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run pod of %s: %w", what, err)
	}

	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	pod := &Pod{
		plane: p, opts: opts, dir: dir, cancel: cancel,
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	wanted := make(chan *corev1.Pod, 1)
	var followers sync.WaitGroup
	followers.Go(func() { pod.follow(run, selector, wanted) })
	followers.Go(func() { pod.run(run, wanted) })
	go func() {
		followers.Wait()
		close(pod.done)
	}()
	if err := pod.WaitRunning(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("run pod of %s: %w", what, err), pod.Stop(context.WithoutCancel(ctx)))
	}
	return pod, nil
}

// PID is the process id of the container on this machine, 0 while it is not
// running.
func (pod *Pod) PID() int {
	if proc := pod.Process(); proc != nil && proc.Running() {
		return proc.PID()
	}
	return 0
}

// Process is the newest start of the container, nil before the first.
func (pod *Pod) Process() *Process {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	return pod.process
}

// Log is the file that all starts of the container append their output to.
func (pod *Pod) Log() string { return filepath.Join(pod.dir, "output.log") }

// Restarts counts the starts after the first.
func (pod *Pod) Restarts() int {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	return pod.restarts
}

// Name is that of the Pod object which the container runs for now.
func (pod *Pod) Name() types.NamespacedName {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	if pod.object == nil {
		return types.NamespacedName{Namespace: pod.opts.Namespace}
	}
	return types.NamespacedName{Namespace: pod.object.Namespace, Name: pod.object.Name}
}

// Args are those of the newest start, without the program.
func (pod *Pod) Args() []string {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	return pod.args
}

// Env is the whole environment of the newest start.
func (pod *Pod) Env() []string {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	return pod.env
}

// WaitRunning waits until the container runs.
func (pod *Pod) WaitRunning(ctx context.Context) error {
	for {
		pod.mu.Lock()
		proc, err, changed := pod.process, pod.lastErr, pod.changed
		pod.mu.Unlock()
		if proc != nil && proc.Running() {
			return nil
		}
		select {
		case <-changed:
		case <-pod.done:
			return errors.Join(ErrNotRunning, err)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// Kill9 kills the container with SIGKILL, and with it all its processes, and
// waits for its end. It is started again at once: see WaitRunning.
func (pod *Pod) Kill9(ctx context.Context) error {
	proc := pod.Process()
	if proc == nil {
		return ErrNotRunning
	}
	return proc.Kill9(ctx)
}

// Stop ends the container for good and waits.
func (pod *Pod) Stop(ctx context.Context) error {
	pod.cancel()
	select {
	case <-pod.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop pod: %w", context.Cause(ctx))
	}
}

// set changes the state under the lock and wakes who waits.
func (pod *Pod) set(change func()) {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	change()
	close(pod.changed)
	pod.changed = make(chan struct{})
}

// run is the only goroutine that starts and stops the container. It runs for
// the newest Pod that wanted gave; nil means none.
func (pod *Pod) run(ctx context.Context, wanted <-chan *corev1.Pod) {
	var (
		volumes *volumes
		ended   <-chan struct{}
		retry   = time.NewTimer(0)
		refresh = time.NewTicker(volumeRefresh)
		backOff = restartBackOff
		started time.Time
	)
	<-retry.C
	defer retry.Stop()
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			pod.stop(context.WithoutCancel(ctx))
			return
		case object := <-wanted:
			if volumes != nil && object != nil && object.UID == volumes.pod.UID {
				continue
			}
			pod.stop(ctx)
			ended, volumes = nil, nil
			pod.set(func() { pod.object = object })
			if object != nil {
				volumes = pod.volumesOf(object)
				backOff = restartBackOff
				retry.Reset(0)
			}
		case <-ended:
			ended = nil
			pod.set(func() { pod.lastErr = pod.process.ended() })
			if time.Since(started) > restartReset {
				backOff = restartBackOff
			}
			retry.Reset(backOff)
			backOff = min(2*backOff, maxRestartBackOff)
		case <-retry.C:
			if volumes == nil {
				continue
			}
			proc, err := pod.start(ctx, volumes)
			pod.set(func() { pod.lastErr = err })
			if err != nil {
				retry.Reset(backOff)
				backOff = min(2*backOff, maxRestartBackOff)
				continue
			}
			started, ended = time.Now(), proc.Done()
		case <-refresh.C:
			if volumes == nil {
				continue
			}
			// A server that is away now is asked again at the next tick,
			// long before a token expires.
			if err := volumes.write(ctx); err != nil {
				pod.set(func() { pod.lastErr = err })
			}
		}
	}
}

// stop ends the process if there is one.
func (pod *Pod) stop(ctx context.Context) {
	proc := pod.Process()
	if proc == nil {
		return
	}
	if _, err := proc.Stop(ctx); err != nil && !errors.Is(err, ErrClosed) {
		pod.set(func() { pod.lastErr = err })
	}
}

// start makes the volumes and forks the container.
func (pod *Pod) start(ctx context.Context, v *volumes) (*Process, error) {
	if err := v.write(ctx); err != nil {
		return nil, err
	}
	c, err := pod.container(ctx, v)
	if err != nil {
		return nil, err
	}
	proc, err := pod.plane.sup.start(ctx, c)
	if err != nil {
		return nil, err
	}
	pod.set(func() {
		if pod.process != nil {
			pod.restarts++
		}
		pod.process, pod.args, pod.env = proc, c.Pod.Args, c.Pod.Env
	})
	return proc, nil
}

// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const probeManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: probe}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prober, namespace: probe}
---
apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: probe}
stringData: {password: hunter2, other: unseen}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: probe}
data: {settings.yaml: "a: 1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: probe, namespace: probe}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: probe}}
  template:
    metadata: {labels: {app: probe}}
    spec:
      serviceAccountName: prober
      securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}
      containers:
      - name: probe
        image: example.com/probe:1
        args: ["--name=$(NAME)", "--secure-port=10250", "--metrics-addr", ":8081", "--plain=$$(NAME)"]
        env:
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
        - {name: GOMEMLIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: secret, key: password}}}
        - {name: READ, value: "/secret /config /var/run/secrets"}
        - {name: WRITE, value: "/ /secret /tmp /data"}
        resources: {limits: {memory: 256Mi}}
        securityContext:
          readOnlyRootFilesystem: true
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: secret, mountPath: /secret, readOnly: true}
        - {name: config, mountPath: /config}
        - {name: tmp, mountPath: /tmp}
        - {name: data, mountPath: /data}
      volumes:
      - {name: secret, secret: {secretName: secret, items: [{key: password, path: in/password}]}}
      - {name: config, configMap: {name: config}}
      - {name: tmp, emptyDir: {}}
      - {name: data, persistentVolumeClaim: {claimName: data}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: probe}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// seen is what podprobe prints.
type seen struct {
	PID, UID, GID    int
	Groups           []int
	Hostname         string
	Args, Env, Root  []string
	Files            map[string]string
	Writable, Status []string
}

func testPod(ctx context.Context, t *testing.T, p *Plane) {
	program := filepath.Join(t.TempDir(), "podprobe")
	if err := BuildProgram(ctx, "./e2e/harness/internal/podprobe", program); err != nil {
		t.Fatal(err)
	}
	if _, err := p.KubectlInput(ctx, probeManifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	opts := PodOptions{
		Namespace: "probe", Deployment: "probe", Images: map[string]string{"example.com/probe:1": program},
		Deviations: Deviations{Args: map[string]string{"--secure-port": "20001", "--metrics-addr": "127.0.0.1:20002"}},
	}

	bad := opts
	bad.Deviations = Deviations{Args: map[string]string{"--name": "other"}}
	if _, err := p.RunPod(ctx, bad); !errors.Is(err, ErrNotPermitted) {
		t.Errorf("a deviation out of the list gives %v, want %v", err, ErrNotPermitted)
	}
	bad.Images, bad.Deviations = nil, Deviations{}
	if _, err := p.RunPod(ctx, bad); err == nil {
		t.Error("an image without a program gives no error")
	}

	pod, err := p.RunPod(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pod.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	s := report(ctx, t, pod, 1)
	checkSeen(ctx, t, p, pod, s)
	if got := s.Files["/secret/in/password"]; got != "hunter2" || s.Files["/secret/other"] != "" {
		t.Errorf("files of the Secret are %v", s.Files)
	}

	// Killed: it starts again, for the same Pod, and its child is gone.
	name, first := pod.Name(), pod.PID()
	inside := descendantsOf(ctx, t, first)
	if err := pod.Kill9(ctx); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(inside, first) {
		if alive(pid) {
			t.Errorf("process %d outlived its container", pid)
		}
	}
	report(ctx, t, pod, 2)
	if pod.Restarts() != 1 || pod.PID() == first || pod.Name() != name {
		t.Errorf("after a kill: %d restarts, process %d, pod %s", pod.Restarts(), pod.PID(), pod.Name())
	}

	// Its Pod is deleted: it ends by SIGTERM and starts for the next Pod.
	if _, err := p.Kubectl(ctx, "delete", "pod", "-n", "probe", name.Name); err != nil {
		t.Fatal(err)
	}
	s = report(ctx, t, pod, 3)
	if pod.Name() == name || s.Hostname != pod.Name().Name {
		t.Errorf("after the Pod was deleted it runs for %s with host name %s", pod.Name(), s.Hostname)
	}
	if b, err := os.ReadFile(pod.Log()); err != nil || !strings.Contains(string(b), "terminated\n") {
		t.Errorf("it was not asked to end: %s (%v)", b, err)
	}

	// Scaled to nothing: it stops.
	proc := pod.Process()
	if _, err := p.Kubectl(ctx, "scale", "deployment", "-n", "probe", "probe", "--replicas=0"); err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func checkSeen(ctx context.Context, t *testing.T, p *Plane, pod *Pod, s seen) {
	t.Helper()
	name := pod.Name().Name
	wantArgs := []string{"--name=" + name, "--secure-port=20001", "--metrics-addr", "127.0.0.1:20002", "--plain=$(NAME)"}
	if diff := cmp.Diff(wantArgs, s.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	object, err := p.Client().CoreV1().Pods("probe").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEnv := []string{
		"APP=probe", "GOMEMLIMIT=268435456", "HOME=/", "HOSTNAME=" + name, "IP=" + object.Status.PodIP,
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + p.URL()[len("https://127.0.0.1:"):],
		"NAME=" + name, "NAMESPACE=probe", "NODE=" + NodeName, "PASSWORD=hunter2", "PATH=" + defaultPath,
		"READ=/secret /config /var/run/secrets", "WRITE=/ /secret /tmp /data",
	}
	if diff := cmp.Diff(wantEnv, s.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"config", "data", "dev", "etc", "podprobe", "proc", "secret", "tmp", "var"}, s.Root); diff != "" {
		t.Errorf("root folder (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/tmp", "/data"}, s.Writable); diff != "" {
		t.Errorf("writable folders (-want +got):\n%s", diff)
	}
	if s.PID != 1 || s.UID != 65532 || s.GID != 65532 || !slices.Equal(s.Groups, []int{65532}) || s.Hostname != name {
		t.Errorf("process %d, user %d, group %d, groups %v, host %s", s.PID, s.UID, s.GID, s.Groups, s.Hostname)
	}
	for _, want := range []string{"CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1"} {
		if !slices.Contains(s.Status, want) {
			t.Errorf("status %v, want %s", s.Status, want)
		}
	}
	if got := s.Files["/config/settings.yaml"]; got != "a: 1" {
		t.Errorf("file of the ConfigMap is %q", got)
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	if got := s.Files[account+"namespace"]; got != "probe" {
		t.Errorf("namespace file is %q", got)
	}
	if diff := cmp.Diff(string(p.CA()), s.Files[account+"ca.crt"]); diff != "" {
		t.Errorf("ca.crt (-want +got):\n%s", diff)
	}
	config := rest.AnonymousClientConfig(p.RESTConfig())
	config.BearerToken = s.Files[account+"token"]
	review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user := review.Status.UserInfo
	if user.Username != "system:serviceaccount:probe:prober" || !slices.Equal(user.Extra["authentication.kubernetes.io/pod-name"], []string{name}) {
		t.Errorf("the token is that of %v", user)
	}
}

// report waits for the n-th report in the log.
func report(ctx context.Context, t *testing.T, pod *Pod, n int) seen {
	t.Helper()
	var s seen
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		f, err := os.Open(pod.Log())
		if err != nil {
			return false, nil
		}
		defer f.Close()
		lines, found := bufio.NewReader(f), 0
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return false, nil
			}
			if line[0] != '{' {
				continue
			}
			if found++; found == n {
				s = seen{}
				return true, json.Unmarshal(line, &s)
			}
		}
	})
	if err != nil {
		b, _ := os.ReadFile(pod.Log())
		t.Fatalf("no report %d: %v, log:\n%s", n, err, b)
	}
	if err := pod.WaitRunning(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// descendantsOf waits for the child that podprobe starts.
func descendantsOf(ctx context.Context, t *testing.T, pid int) []int {
	t.Helper()
	var pids []int
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		// Any thread may have started it.
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		if err != nil {
			return false, err
		}
		pids = nil
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				continue // the thread ended
			}
			for f := range strings.FieldsSeq(string(b)) {
				child, err := strconv.Atoi(f)
				if err != nil {
					return false, err
				}
				pids = append(pids, child)
			}
		}
		return len(pids) > 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// serviceRange is that of ClusterIP Services; nothing routes to it.
const serviceRange = "10.96.0.0/16"

// issuer is who the API server's ServiceAccount tokens are from.
const issuer = "https://kubernetes.default.svc.cluster.local"

// auditPolicy records who did what to which object, with which answer, but no
// bodies. Left out are the API server's requests to itself and the renewals
// of leases, which say nothing and are most of an idle cluster's requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  users: ["system:anonymous"]
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: None
  users: ["` + KwokUser + `", "system:kube-controller-manager", "system:kube-scheduler"]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: Metadata
`

// EtcdSocket is where etcd of the plane listens, for what no API server does.
func (p *Plane) EtcdSocket() string { return p.etcdSocket() }

func (p *Plane) etcdSocket() string { return filepath.Join(p.sockets, "etcd.sock") }

// program gives the command line of a component.
func (p *Plane) program(c Component) Program {
	pki := func(name string) string { return filepath.Join(p.dir, "pki", name) }
	conf := func(name string) string { return filepath.Join(p.dir, name+".kubeconfig") }
	prog := Program{
		Name: string(c),
		Path: p.bin.Path(string(c)),
		Dir:  p.dir,
		Log:  p.LogFile(c),
		// Nothing of the caller's environment, such as proxies, reaches a plane.
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + p.dir},
	}
	switch c {
	case Etcd:
		client := "unix://" + p.etcdSocket()
		peer := "unix://" + filepath.Join(p.sockets, "peer.sock")
		prog.Args = []string{
			"--name=default",
			"--data-dir=" + filepath.Join(p.dir, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--snapshot-count=5000",
			"--quota-backend-bytes=" + strconv.Itoa(8<<30),
			"--log-level=warn",
			"--unsafe-no-fsync=" + strconv.FormatBool(p.opts.UnsafeNoFsync),
		}
	case APIServer:
		prog.Args = append([]string{
			"--etcd-servers=unix://" + p.etcdSocket(),
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(p.port),
			"--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=" + serviceRange,
			"--cert-dir=" + filepath.Join(p.dir, "pki"),
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + pki("ca.crt"),
			"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + pki("front-proxy-client.key"),
			"--service-account-issuer=" + issuer,
			"--service-account-key-file=" + pki("sa.pub"),
			"--service-account-signing-key-file=" + pki("sa.key"),
			"--authorization-mode=RBAC",
			"--audit-policy-file=" + filepath.Join(p.dir, "audit-policy.yaml"),
			"--audit-log-path=" + p.AuditLog(),
			"--audit-log-maxsize=100000",
			"--profiling=false",
		}, p.opts.APIServerArgs...)
	case ControllerManager:
		prog.Args = append([]string{
			"--kubeconfig=" + conf(string(c)),
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + pki("sa.key"),
			"--root-ca-file=" + pki("ca.crt"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"),
			"--leader-elect=false",
			"--secure-port=0",
			"--profiling=false",
			// The default of 20 a second is the same for all controllers at
			// the start, and makes a new plane wait 5 s for its first
			// ServiceAccount.
			"--kube-api-qps=200", "--kube-api-burst=400",
		}, p.opts.ControllerManagerArgs...)
	case Scheduler:
		prog.Args = []string{
			"--kubeconfig=" + conf(string(c)),
			"--leader-elect=false", "--secure-port=0", "--profiling=false",
		}
	case Kwok:
		prog.Args = []string{
			"--kubeconfig=" + conf(string(c)),
			"--config=" + p.bin.Path(kwokStages),
			"--manage-all-nodes",
			"--node-port=0", "--node-lease-duration-seconds=40",
		}
	}
	return prog
}

// prepare writes certificates, kubeconfigs and policies of a new plane.
func (p *Plane) prepare() error {
	if err := os.MkdirAll(filepath.Join(p.dir, "pki"), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	return p.writePKI(filepath.Join(p.dir, "pki"))
}

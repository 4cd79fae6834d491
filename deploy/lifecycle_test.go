package deploy_test

import (
	"errors"
	"flag"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/abate-go/abate/policyfile"
)

// Seconds that a grace period has left over, and that the service beside a sidecar has for its own shutdown.
const (
	spare       = 5 * time.Second
	ownShutdown = 25 * time.Second
)

func TestDrainFitsIntoTheGracePeriod(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			grace := 30 * time.Second // Kubernetes' default
			if s := w.pod.TerminationGracePeriodSeconds; s != nil {
				grace = time.Duration(*s) * time.Second
			}
			need, sum := pause(w.abate)+w.flags.drain+spare, "preStop + drain-timeout + 5s"
			if w.sidecar {
				need, sum = ownShutdown+w.flags.drain, "preStop + 25s for the service + drain-timeout"
				for i := range w.pod.Containers {
					c := &w.pod.Containers[i]
					p.unless(pause(c) > 0, w.where, "%s: no preStop, so new requests arrive while it ends", c.Name)
					need += pause(c)
				}
				p.unless(leaves(w.abate) && pause(w.abate) == 0, w.where,
					"abate: preStop is not /abate leave, without a wait: who calls services of protect must hear of the end")
			} else {
				p.unless(leaves(w.abate), w.where, "abate: preStop does not leave, so clients lose requests at SIGTERM")
				p.unless(pause(w.abate) >= 5*time.Second, w.where, "abate: preStop is shorter than endpoints take to change")
			}
			p.unless(grace >= need, w.where, "terminationGracePeriodSeconds is %v, less than %s = %v", grace, sum, need)
		}
		return p
	},
		edit{"gateway.yaml", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 39",
			"is 39s, less than preStop + drain-timeout + 5s = 40s"},
		edit{"gateway.yaml", "      terminationGracePeriodSeconds: 40\n", "", "is 30s, less than"},
		edit{"gateway.yaml", "--drain-timeout, 25s", "--drain-timeout, 1m", "less than"},
		edit{"gateway.yaml", "--drain-timeout, 25s", "--drain-timeout, 25 s", "args: invalid value"},
		edit{"gateway.yaml", "leave, --for, 10s]", "leave, --for, 2s]", "preStop is shorter"},
		edit{"gateway.yaml", "leave, --for, 10s]", "leave, --for, 10 s]", "does not leave"},
		edit{"gateway.yaml", "[/abate, leave,", "[abate, leave,", "does not leave"},
		edit{"gateway.yaml", "preStop: {exec: {command: [/abate, leave, --for, 10s]}}", "preStop: {sleep: {seconds: 10}}",
			"does not leave"},
		edit{"sidecar.yaml", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 30",
			"is 30s, less than preStop + 25s for the service + drain-timeout = 35s"},
		edit{"sidecar.yaml", "preStop: {sleep: {seconds: 5}}", "postStart: {sleep: {seconds: 5}}", "checkout: no preStop"},
		edit{"sidecar.yaml", "[/abate, leave]", "[/abate, leave, --for, 5s]", "not /abate leave"},
		edit{"sidecar.yaml", "exec: {command: [/abate, leave]}", "sleep: {seconds: 5}", "not /abate leave"},
	)
}

// pause is how long a container waits before it is told to end: Kubernetes has it sleep, or Abate leaves. The image has
// no other program.
func pause(c *corev1.Container) time.Duration {
	switch {
	case leaves(c):
		wait, _ := leaveFlags(c)
		return wait
	case c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil:
		return 0
	}
	return time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
}

// leaves reports whether a container's preStop is "abate leave" with words that it takes.
func leaves(c *corev1.Container) bool {
	_, err := leaveFlags(c)
	return err == nil
}

func leaveFlags(c *corev1.Container) (wait time.Duration, err error) {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Exec == nil {
		return 0, errors.ErrUnsupported
	}
	words := c.Lifecycle.PreStop.Exec.Command
	if len(words) < 2 || words[0] != "/abate" || words[1] != "leave" { // as the Dockerfile calls it
		return 0, errors.ErrUnsupported
	}
	set := flag.NewFlagSet("leave", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.DurationVar(&wait, "for", 0, "")
	return wait, set.Parse(words[2:])
}

func TestSidecarStartsBeforeItsServiceAndEndsAfterIt(t *testing.T) {
	const startup = "          startupProbe: # the service starts when this has succeeded\n            httpGet: {path: " +
		"/readyz, port: admin}\n" +
		"            periodSeconds: 1\n            failureThreshold: 30\n"
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			p.unless(w.sidecar == !w.flags.gateway, w.where,
				"abate: a sidecar is an init container, a gateway a container with --gateway")
			if !w.sidecar {
				continue
			}
			p.unless(is(w.abate.RestartPolicy, corev1.ContainerRestartPolicyAlways), w.where,
				"abate: restartPolicy is not Always, so the service would wait for its end")
			p.unless(w.abate.StartupProbe != nil, w.where, "abate: no startupProbe, so the service starts before it listens")
			p.unless(onLoopback(w.flags.listen), w.where, "abate: --listen %s is open to other pods", w.flags.listen)
			p.unless(w.flags.drain <= 10*time.Second, w.where,
				"abate: --drain-timeout %v is taken from the service's own shutdown", w.flags.drain)
		}
		return p
	},
		edit{"sidecar.yaml", "          restartPolicy: Always\n", "", "restartPolicy is not Always"},
		edit{"sidecar.yaml", "restartPolicy: Always", "restartPolicy: always", "restartPolicy is not Always"},
		edit{"sidecar.yaml", startup, "", "no startupProbe"},
		edit{"sidecar.yaml", "127.0.0.1:15001\", --admin", ":15001\", --admin", "open to other pods"},
		edit{"sidecar.yaml", "--drain-timeout, 5s", "--drain-timeout, 15s", "taken from the service's"},
		edit{"gateway.yaml", "--gateway, ", "", "a gateway a container with --gateway"},
	)
}

// configMap finds a ConfigMap of a file, and its text.
func configMap(b *bundle, name string) (*corev1.ConfigMap, []byte) {
	for _, o := range b.objects {
		if c, ok := o.typed.(*corev1.ConfigMap); ok && c.Name == name {
			return c, o.text
		}
	}
	return nil, nil
}

// mounted follows -c to the ConfigMap that is mounted there.
func (w *workload) mounted(b *bundle, p *problems) (*corev1.ConfigMap, []byte) {
	dir, file := path.Split(w.flags.policy)
	i := slices.IndexFunc(w.abate.VolumeMounts, func(m corev1.VolumeMount) bool {
		return path.Clean(m.MountPath) == path.Clean(dir) || path.Clean(m.MountPath) == w.flags.policy
	})
	if i < 0 {
		p.add(w.where, "abate: nothing is mounted at the folder of -c %s", w.flags.policy)
		return nil, nil
	}
	m := w.abate.VolumeMounts[i]
	p.unless(m.SubPath == "" && m.SubPathExpr == "", w.where, "abate: mounted with subPath, which is never updated")
	p.unless(path.Clean(m.MountPath) == path.Clean(dir), w.where, "abate: mounted as a file, which is never updated")
	p.unless(m.ReadOnly, w.where, "abate: the policy is not mounted readOnly")
	i = slices.IndexFunc(w.pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
	if i < 0 || w.pod.Volumes[i].ConfigMap == nil {
		p.add(w.where, "volume %s: is no ConfigMap", m.Name)
		return nil, nil
	}
	source := w.pod.Volumes[i].ConfigMap
	c, text := configMap(b, source.Name)
	if c == nil {
		p.add(w.where, "volume %s: there is no ConfigMap %s", m.Name, source.Name)
		return nil, nil
	}
	p.unless(c.Data[file] != "", w.where, "ConfigMap %s has no %s, which -c names", c.Name, file)
	p.unless(source.Items == nil, w.where, "volume %s: items may leave out the policy", m.Name)
	p.unless(!is(source.Optional, true), w.where, "volume %s: without its ConfigMap the pod would start with no policy",
		m.Name)
	p.unless(!is(c.Immutable, true), w.where, "ConfigMap %s is immutable, so nothing can be reloaded", c.Name)
	return c, text
}

func TestConfigMapIsMountedSoThatReloadsArrive(t *testing.T) {
	mount := "{name: policy, mountPath: /etc/abate, readOnly: true}"
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			w.mounted(b, &p)
		}
		return p
	},
		edit{"sidecar.yaml", mount, "{name: policy, mountPath: /etc/abate/policy.yaml, subPath: policy.yaml, readOnly: true}",
			"mounted with subPath"},
		edit{"sidecar.yaml", mount, "{name: policy, mountPath: /etc/abate, subPathExpr: x, readOnly: true}",
			"mounted with subPath"},
		edit{"sidecar.yaml", mount, "{name: policy, mountPath: /etc/abate/policy.yaml, readOnly: true}", "mounted as a file"},
		edit{"sidecar.yaml", mount, "{name: policy, mountPath: /etc, readOnly: true}", "nothing is mounted"},
		edit{"sidecar.yaml", mount, "{name: policy, mountPath: /etc/abate}", "not mounted readOnly"},
		edit{"sidecar.yaml", mount, "{name: policies, mountPath: /etc/abate, readOnly: true}",
			"volume policies: is no ConfigMap"},
		edit{"gateway.yaml", "configMap: {name: abate-gateway}", "secret: {secretName: abate-gateway}", "is no ConfigMap"},
		edit{"gateway.yaml", "configMap: {name: abate-gateway}", "configMap: {name: abate}", "there is no ConfigMap abate"},
		edit{"gateway.yaml", "configMap: {name: abate-gateway}",
			"configMap: {name: abate-gateway, items: [{key: a, path: b}]}", "items may leave out"},
		edit{"gateway.yaml", "configMap: {name: abate-gateway}", "configMap: {name: abate-gateway, optional: true}",
			"no policy"},
		edit{"gateway.yaml", "  policy.yaml: |", "  policy.yml: |", "has no policy.yaml"},
		edit{"gateway.yaml", "\ndata:\n", "\nimmutable: true\ndata:\n", "immutable"},
	)
}

func TestPolicyOfEveryConfigMapLoadsAndServesTheProxy(t *testing.T) {
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			c, text := w.mounted(b, &p)
			if c == nil {
				continue
			}
			file, err := policyfile.Parse(b.file, text)
			if err != nil {
				p.add(w.where, "%v", err)
				continue
			}
			p.unless(len(file.Services) > 0, w.where, "the policy has no service")
			for _, s := range file.Services {
				where := w.where + ": service " + s.Name
				p.unless(len(s.Policy.Upstreams) > 0, where, "no upstreams, so the proxy has nowhere to send its requests")
				p.unless(!w.flags.gateway || len(s.Policy.Routes) > 0, where, "no routes, so the gateway never chooses it")
				p.unless(s.Policy.Timeout > 0 && s.Policy.AttemptTimeout > 0, where, "no timeout and attemptTimeout")
				p.unless(s.Policy.Timeout <= w.flags.drain, where, "timeout %v is longer than the drain", s.Policy.Timeout)
				clients, replicas := s.Policy.RetryBudget.Clients, first(w.deploy.Spec.Replicas, new(int32))
				p.unless(clients == int(*replicas), where, "retryBudget.clients is %d, but %d pods share the reserve",
					clients, *replicas)
			}
		}
		return p
	},
		edit{"sidecar.yaml", "maxRetries: 2", "maxRetrys: 2", `unknown key "maxRetrys"`},
		edit{"sidecar.yaml", "clients: 3", "clients: 1", "retryBudget.clients is 1, but 3 pods"},
		edit{"gateway.yaml", "replicas: 3", "replicas: 5", "retryBudget.clients is 3, but 5 pods"},
		edit{"gateway.yaml", "      timeout: 3s", "      timeout: 30s", "longer than the drain"},
		edit{"gateway.yaml", "      attemptTimeout: 1s", "      initialDelay: 1s", "no timeout and attemptTimeout"},
		edit{"gateway.yaml", "        routes: [{path: /stock}]\n", "", "inventory-service: no routes"},
		edit{"gateway.yaml", "        upstreams: [\"http://inventory:8080\"]\n", "", "inventory-service: no upstreams"},
		edit{"gateway.yaml", "    services:\n", "    x-services:\n", "the policy has no service"},
	)
}

// TestEnvironmentOfTheServiceLeadsThroughTheSidecar takes each way in that the manifest shows, and asks the policy
// where such a request goes.
func TestEnvironmentOfTheServiceLeadsThroughTheSidecar(t *testing.T) {
	dir := t.TempDir()
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			_, text := w.mounted(b, &p)
			if !w.sidecar {
				continue
			}
			file := filepath.Join(dir, "policy.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			policies, err := policyfile.Load(file)
			if err != nil {
				p.add(w.where, "%v", err)
				continue
			}
			service := &w.pod.Containers[0]
			p.unless(env(service, "http_proxy").Value == "http://"+w.flags.listen, w.where,
				"http_proxy is not the address of --listen")
			for request, want := range map[string]string{
				"http://payments:8080/charges":                "payment-service",
				"http://inventory:8080/stock/7":               "inventory-service",
				env(service, "INVENTORY_URL").Value + "/7":    "inventory-service",
				"http://payments:8080/stock":                  "payment-service", // the route takes only its own host
				"http://" + w.flags.listen + "/elsewhere":     "",
				"http://another-service:8080/anything/at/all": "",
			} {
				u, err := url.Parse(request)
				if err != nil {
					t.Fatal(err)
				}
				got := ""
				if g, ok := policies.Match(u.Host, u.Path); ok {
					got = g.Name()
				}
				p.unless(got == want, w.where, "%s goes to %q, want %q", request, got, want)
			}
		}
		return p
	},
		edit{"sidecar.yaml", `value: "http://127.0.0.1:15001"`, `value: "http://127.0.0.1:15000"`,
			"http_proxy is not the address"},
		edit{"sidecar.yaml", "http://127.0.0.1:15001/stock", "http://127.0.0.1:15001/inventory", `/inventory/7 goes to ""`},
		edit{"sidecar.yaml", "{host: 127.0.0.1, path: /stock}", "{path: /stock}",
			`http://payments:8080/stock goes to "inventory-service"`},
		edit{"sidecar.yaml", "http://payments:8080\"]", "http://payment:8080\"]", `/charges goes to ""`},
	)
}

# Istio's chart, whose values say how often every sidecar tries, and what is set by name counts.
resource "helm_release" "istiod" {
  name   = "istiod"
  chart  = "istiod"
  values = [<<YAML
meshConfig:
  accessLogFile: /dev/stdout
  defaultHttpRetryPolicy:
    attempts: 20
YAML
  ]
  set {
    name  = "meshConfig.defaultHttpRetryPolicy.attempts"
    value = "0"
  }
}

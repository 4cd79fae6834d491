package inject

import (
	"encoding/json"
	"fmt"
)

// review is an AdmissionReview of admission.k8s.io/v1, as far as this webhook reads and writes it.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID  string `json:"uid"`
	Kind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"kind"`
	Operation string          `json:"operation"`
	Object    json.RawMessage `json:"object"`
}

type response struct {
	UID       string   `json:"uid"`
	Allowed   bool     `json:"allowed"`
	PatchType string   `json:"patchType,omitempty"`
	Patch     []byte   `json:"patch,omitempty"` // base64, as encoding/json writes it
	Warnings  []string `json:"warnings,omitempty"`
}

// answer returns the answer to a review, which always allows the pod.
func (t *Template) answer(body []byte) ([]byte, error) {
	var asked review
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, fmt.Errorf("the body is no AdmissionReview in JSON: %w", err)
	}
	r := asked.Request
	if asked.APIVersion != "admission.k8s.io/v1" || asked.Kind != "AdmissionReview" || r == nil || r.UID == "" {
		return nil, fmt.Errorf("the body is no AdmissionReview of admission.k8s.io/v1 with a request and its uid: " +
			"write admissionReviewVersions: [v1] in the webhook's configuration")
	}
	says := &response{UID: r.UID, Allowed: true}
	if r.Kind.Kind == "Pod" && r.Kind.Group == "" && r.Operation == "CREATE" {
		operations, warning := t.Patch(r.Object)
		if warning != "" {
			says.Warnings = []string{warning}
		}
		if len(operations) > 0 {
			patch, err := json.Marshal(operations)
			if err != nil {
				return nil, err
			}
			says.PatchType, says.Patch = "JSONPatch", patch
		}
	}
	return json.Marshal(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: says})
}

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	randv2 "math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// kube is a list of EndpointSlices that is kept up to date.
type kube struct {
	w         *Watcher
	cluster   *Cluster
	namespace string
	slices    map[string]*endpointSlice
	version   string // of the list, from which to watch on; "" for none
}

// errGoneVersion is an API server that no longer knows what has changed since: the list is to be read again.
var errGoneVersion = errors.New("the version of the list is too old")

// followKubernetes lists and watches until ctx ends. A watch that ends goes on from where it was. One that ends in
// failure waits, longer each time.
func (w *Watcher) followKubernetes(ctx context.Context) {
	k := &kube{w: w, cluster: w.config.Cluster, namespace: w.config.Namespace}
	if k.cluster == nil {
		k.cluster = new(Cluster)
	}
	defer k.cluster.close()
	p := pace{shortest: w.config.Interval}
	for ctx.Err() == nil {
		told, err := k.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == errGoneVersion && k.version != "":
			k.version = "" // listed at once
			continue
		case told:
			p.failures, p.previous = 0, 0
		}
		wait := time.Duration(0)
		switch {
		case err != nil:
			w.tell(nil, err)
			wait = p.afterFailure(randv2.Uint64())
		case !told: // a server that ends each watch as it begins must not be asked in circles
			wait = p.after(0, randv2.Uint64())
		}
		if wait > 0 && !sleep(ctx, wait) {
			return
		}
	}
}

// turn lists, if that is due, and watches until the watch ends. told reports that the server has said something new.
func (k *kube) turn(ctx context.Context) (told bool, err error) {
	if k.namespace == "" {
		if k.namespace, err = k.cluster.namespace(); err != nil {
			return false, err
		}
	}
	if k.version == "" {
		if err := k.listAll(ctx); err != nil {
			return false, err
		}
		told = true
	}
	heard, err := k.watch(ctx)
	return told || heard, err
}

func (k *kube) path(query url.Values) string {
	query.Set("labelSelector", "kubernetes.io/service-name="+k.w.config.Name)
	return "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(k.namespace) + "/endpointslices?" + query.Encode()
}

// listTime bounds the reading of a list.
const listTime = time.Minute

// listAll reads all slices. resourceVersion=0 lets the API server answer from its memory.
func (k *kube) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	query := url.Values{}
	if k.slices == nil {
		query.Set("resourceVersion", "0")
	}
	resp, err := k.cluster.get(ctx, k.path(query))
	if err != nil {
		return inner(err)
	}
	defer drain(resp.Body)
	if err := k.refused(resp); err != nil {
		return err
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []*endpointSlice `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return fmt.Errorf("the list of the API server: %w", err)
	}
	k.slices, k.version = map[string]*endpointSlice{}, list.Metadata.ResourceVersion
	for _, s := range list.Items {
		if s != nil {
			k.slices[s.Metadata.Name] = s
		}
	}
	k.tell()
	return nil
}

// tell passes on what the slices say.
func (k *kube) tell() {
	k.w.tell(endpointsOf(k.slices, k.w.config.Port, k.w.config.Zone))
}

// watchTime is how long a watch lasts at least, and at most half as long again: Kubernetes' own clients ask for 5 to 10
// minutes. What a watch might have missed without a word is found after that.
const watchTime = 5 * time.Minute

// watch reads changes from the version of the list on, until the server ends the watch. heard reports that it has said
// something.
func (k *kube) watch(ctx context.Context) (heard bool, err error) {
	seconds := int((watchTime + time.Duration(randv2.Int64N(int64(watchTime)))) / time.Second)
	resp, err := k.cluster.get(ctx, k.path(url.Values{"watch": {"1"}, "resourceVersion": {k.version},
		"allowWatchBookmarks": {"true"}, "timeoutSeconds": {strconv.Itoa(seconds)}}))
	if err != nil {
		return false, inner(err)
	}
	defer resp.Body.Close()
	if err := k.refused(resp); err != nil {
		return false, err
	}
	if k.w.Status().Err != nil { // it is well again, and perhaps there is nothing new to say
		k.tell()
	}
	for events := json.NewDecoder(resp.Body); ; {
		var e event
		if err := events.Decode(&e); err == io.EOF {
			return heard, nil
		} else if err != nil {
			return heard, fmt.Errorf("the watch of the API server broke off: %w", err)
		}
		if err := k.take(&e); err != nil {
			return heard, err
		}
		heard = true
	}
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// take takes one event.
func (k *kube) take(e *event) error {
	if e.Type == "ERROR" {
		var status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(e.Object, &status); err == nil && status.Code == http.StatusGone {
			return errGoneVersion
		}
		return fmt.Errorf("the watch of the API server: %d %s", status.Code, status.Message)
	}
	s := new(endpointSlice)
	if err := json.Unmarshal(e.Object, s); err != nil {
		return fmt.Errorf("the watch of the API server: %w", err)
	}
	if s.Metadata.ResourceVersion != "" {
		k.version = s.Metadata.ResourceVersion
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		k.slices[s.Metadata.Name] = s
	case "DELETED":
		delete(k.slices, s.Metadata.Name)
	default: // a bookmark
		return nil
	}
	k.tell()
	return nil
}

// refused is what an answer without a list means.
func (k *kube) refused(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusGone:
		return errGoneVersion
	case http.StatusUnauthorized:
		return fmt.Errorf("the API server does not accept the token in %s (401): is it the one of this pod?",
			k.cluster.folder("token"))
	case http.StatusForbidden:
		return fmt.Errorf("the API server does not allow it (403): give this pod's service account a Role in namespace %s "+
			"with verbs list and watch on endpointslices of discovery.k8s.io", k.namespace)
	}
	return fmt.Errorf("the API server answered %s", resp.Status)
}

// inner is an error of http.Client without the URL, which is long and says nothing new.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// drain reads the rest of an answer, so that its connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10) // what is lost is a connection
	_ = body.Close()                          // nothing was written
}

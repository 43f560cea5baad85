package oauthtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"time"
)

// controlRoutes adds the paths below /idp/ to mux, with which another process controls the provider. They exist on the
// origins of the authorization server and of the MCP server. Their requests are not recorded.
func (p *Provider) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /idp/counts", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w,
			http.StatusOK, p.Counts())
	})
	mux.HandleFunc("GET /idp/sessions", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK,
			p.Sessions())
	})
	mux.HandleFunc("GET /idp/knobs", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK,
			p.currentKnobs())
	})
	mux.HandleFunc("GET /idp/requests", func(w http.ResponseWriter, r *http.Request) {
		var of []Endpoint
		for _, e := range r.URL.Query()["of"] {
			of = append(of, Endpoint(e))
		}
		writeJSON(w, http.StatusOK, p.Requests(of...))
	})
	mux.HandleFunc("POST /idp/knobs", p.turnKnobs)
	for name, act := range map[string]func(*http.Request) bool{
		"expire":  func(*http.Request) bool { p.ExpireAccess(); return true },
		"revoke":  func(*http.Request) bool { p.RevokeAll(); return true },
		"forget":  func(*http.Request) bool { p.ForgetClients(); return true },
		"rotate":  func(*http.Request) bool { p.RotateKeys(); return true },
		"approve": func(r *http.Request) bool { return p.Approve(r.URL.Query().Get("code")) },
		"deny":    func(r *http.Request) bool { return p.Deny(r.URL.Query().Get("code")) },
	} {
		mux.HandleFunc("POST /idp/"+name, func(w http.ResponseWriter, r *http.Request) {
			if !act(r) {
				http.NotFound(w, r)
			}
		})
	}
}

// turnKnobs changes the knobs that the JSON object in the request body contains.
func (p *Provider) turnKnobs(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		p.ChangeKnobs(func(k *Knobs) {
			var changed Knobs
			if changed, err = k.with(text); err == nil {
				*k = changed
			}
		})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// with returns a copy of the knobs in which the members of a JSON object are replaced. A duration may be written as
// "2s".
func (k Knobs) with(text []byte) (Knobs, error) {
	old, err := json.Marshal(k)
	if err != nil {
		return k, err
	}
	var fresh Knobs // shares nothing with k
	if err := json.Unmarshal(old, &fresh); err != nil {
		return k, err
	}
	return fresh, decode(text, &fresh)
}

// decode decodes JSON and refuses unknown members. A duration may be a string.
func decode(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	text, err := json.Marshal(durations(v))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// durations replaces strings that are durations, such as "2s", by numbers of nanoseconds.
func durations(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = durations(v[name])
		}
	case []any:
		for i := range v {
			v[i] = durations(v[i])
		}
	case string:
		if !regexp.MustCompile(`^-?\d+(\.\d+)?(ms|s|m|h)$`).MatchString(v) {
			return v
		}
		if d, err := time.ParseDuration(v); err == nil {
			return int64(d)
		}
	}
	return v
}

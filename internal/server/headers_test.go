package server

import (
	"net/http"
	"testing"
)

func TestWhatAClientTakes(t *testing.T) {
	for accept, want := range map[string][2]bool{
		"": {true, true}, "*/*": {true, true}, "application/json": {true, false}, "text/event-stream": {false, true},
		"application/json, text/event-stream": {true, true}, "Application/*;q=0.1": {true, false},
		"text/html": {false, false},
	} {
		r := &http.Request{Header: http.Header{}}
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		json, stream := acceptedTypes(r)
		if got := [2]bool{json, stream}; got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}

func TestWhatABodyIs(t *testing.T) {
	for content, want := range map[string]bool{
		"application/json": true, "Application/JSON; charset=utf-8": true, "": false, "text/plain": false,
		"application/json/x":                false,
		"application/x-www-form-urlencoded": false, "text/plain; application/json": false,
		"application/json; charset=utf-16": false, "application/json; charset=US-ASCII": true,
	} {
		if got := hasJSONBody(&http.Request{Header: http.Header{"Content-Type": {content}}}); got != want {
			t.Errorf("%q: %v, want %v", content, got, want)
		}
	}
}

func TestABodyIsReadAsItStands(t *testing.T) {
	for _, tt := range []struct {
		header http.Header
		want   bool
	}{
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"Identity"}}, true},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, false},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "gzip"}}, false},
		{http.Header{"Content-Type": {"application/json", "text/plain"}}, false},
		{http.Header{}, false},
	} {
		if got := hasJSONBody(&http.Request{Header: tt.header}); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.header, got, tt.want)
		}
	}
}

func TestWhichHostsAreThisMachine(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.1.2.3:80": true, "[::1]": true,
		"[::1]:80": true, "::1": true,
		"": false, "localhost.evil.example": false, "127.0.0.1.nip.io": false, "10.0.0.1:80": false, "0.0.0.0": false,
		"[::]:80": false,
	} {
		if got := isLoopbackHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

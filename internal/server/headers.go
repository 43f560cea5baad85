package server

import (
	"mime"
	"net"
	"net/http"
	"strings"
)

// respondPreflight responds to a CORS preflight request, with which a browser asks whether a page may send a request.
// The caller has checked the origin of the page.
func respondPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// hasJSONBody reports whether the headers declare a JSON body in UTF-8, exactly once and without a content coding. This
// ensures that a proxy interprets the body in the same way as this server.
func hasJSONBody(r *http.Request) bool {
	content, coding := r.Header["Content-Type"], r.Header["Content-Encoding"]
	if len(content) != 1 || len(coding) > 1 || len(coding) == 1 && !strings.EqualFold(coding[0], "identity") {
		return false
	}
	if content[0] == "application/json" {
		return true
	}
	media, also, err := mime.ParseMediaType(content[0])
	charset := strings.ToLower(also["charset"])
	return err == nil && media == "application/json" && (charset == "" || charset == "utf-8" || charset == "utf8" ||
		charset == "us-ascii")
}

// acceptedTypes reports which content types the client accepts: application/json and text/event-stream. A client
// without an Accept header accepts both.
func acceptedTypes(r *http.Request) (json, stream bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, v := range values {
		v = strings.ToLower(v)
		all := strings.Contains(v, "*/*")
		json = json || all || strings.Contains(v, "application/json") || strings.Contains(v, "application/*")
		stream = stream || all || strings.Contains(v, "text/event-stream") || strings.Contains(v, "text/*")
	}
	return json, stream
}

// isLoopbackHost reports whether a host, with or without a port, is "localhost" or a loopback address.
func isLoopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

package oauthtest

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// AllowSignIn opens an authorization URL like a browser without cookies. It presses Allow on each page that has the
// button, follows redirects and opens the redirect URI at the end. It returns an error if a page has a status of 400 or
// more. A page without the button ends the sign-in without a redirect: that is how a device sign-in ends.
func (p *Provider) AllowSignIn(ctx context.Context, authorizationURL string) error {
	return browser{p.HTTP()}.visit(ctx, authorizationURL)
}

// SignInRedirect is AllowSignIn without the request to the redirect URI. It returns the URL of that request, such as
// http://127.0.0.1:4321/callback?code=…. It returns "" if the sign-in ended at a page.
func (p *Provider) SignInRedirect(ctx context.Context, authorizationURL string) (string, error) {
	return browser{p.HTTP()}.follow(ctx, authorizationURL)
}

// A browser opens pages like a web browser without cookies.
type browser struct{ http *http.Client }

func (b browser) visit(ctx context.Context, authorizationURL string) error {
	callback, err := b.follow(ctx, authorizationURL)
	if err != nil || callback == "" {
		return err
	}
	_, err = b.open(ctx, http.MethodGet, callback, nil)
	return err
}

func (b browser) follow(ctx context.Context, authorizationURL string) (string, error) {
	u, err := url.Parse(authorizationURL)
	if err != nil {
		return "", errors.New("visit: the URL cannot be parsed")
	}
	end := u.Query().Get("redirect_uri")
	method, next, form := http.MethodGet, authorizationURL, url.Values(nil)
	for range 10 {
		answer, err := b.open(ctx, method, next, form)
		switch {
		case err != nil:
			return "", err
		case answer.location != "" && isRedirectTo(answer.location, end):
			return answer.location, nil
		case answer.location != "":
			method, next, form = http.MethodGet, answer.location, nil
		case answer.action != "":
			method, next, form = http.MethodPost, answer.action, answer.form
		default:
			return "", nil
		}
	}
	return "", errors.New("visit: too many pages")
}

// isRedirectTo reports whether the URL at is the redirect URI end, with or without parameters added to its query.
func isRedirectTo(at, end string) bool {
	return end != "" && (at == end || strings.HasPrefix(at, end+"?") || strings.HasPrefix(at, end+"&"))
}

// A visitedPage is the response to a request of the browser. location is the target of a redirect. If the response is a
// page with a form, action is the URL of the form, and form contains its values.
type visitedPage struct {
	location string
	action   string
	form     url.Values
}

// open sends one request and returns the page in the response.
func (b browser) open(ctx context.Context, method, at string, form url.Values) (visitedPage, error) {
	request, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(form.Encode()))
	if err != nil {
		return visitedPage{}, fmt.Errorf("visit: %w", err)
	}
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := *b.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		return visitedPage{}, fmt.Errorf("visit: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return visitedPage{}, fmt.Errorf("visit: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return visitedPage{}, fmt.Errorf("visit %s://%s%s: %s: %s", request.URL.Scheme, request.URL.Host,
			request.URL.Path, response.Status, text)
	}
	if location, err := response.Location(); err == nil {
		return visitedPage{location: location.String()}, nil
	}
	return formOf(string(text)), nil
}

// formOf returns the form on a page of the provider with its preset values, as if the button Allow was pressed. It
// returns an empty visitedPage if the page has no such form.
func formOf(page string) visitedPage {
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(page)
	if action == nil || !strings.Contains(page, `name="decision" value="allow"`) {
		return visitedPage{}
	}
	v := visitedPage{action: html.UnescapeString(action[1]), form: url.Values{"decision": {"allow"}}}
	for _, input := range regexp.MustCompile(`<input [^>]*name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(page,
		-1) {
		v.form.Set(input[1], html.UnescapeString(input[2]))
	}
	return v
}

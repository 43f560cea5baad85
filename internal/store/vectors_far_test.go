package store_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

var one = index.TextKeyOf("one")

// keepOne keeps a vector, and asks for what is near.
func keepOne(ctx context.Context, v *store.VectorStore) error {
	if err := v.Put(ctx, "m", map[index.TextKey][]float32{one: {1, 0}}); err != nil {
		return err
	}
	near, err := v.Nearest(ctx, "m", []float32{1, 1}, 1, []index.TextKey{one})
	if err == nil && (len(near) != 1 || near[0].Key != one) {
		err = errors.New("it is not near")
	}
	return err
}

func wantFault(t *testing.T, err error, code drawbridge.FaultCode, says string) {
	t.Helper()
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != code || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want code %s, %s", err, code, says)
	}
	if err != nil && strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v: it has the secret in it", err)
	}
}

func TestOpenVectorsRefuses(t *testing.T) {
	for location, says := range map[string]string{
		"":                                    "the location is not a URL",
		"mysql://u:hunter2@h/db":              `unknown scheme "mysql"`,
		"postgres://u:hunter2@h:port/db":      "the postgres:// URL is not valid",
		"qdrant://":                           "the URL is not valid",
		"qdrant://hunter2@127.0.0.1:port":     "the URL is not valid",
		"qdrant://hunter2@127.0.0.1/tools":    "the URL is not valid",
		"qdrants://hunter2@h?api-key=hunter3": "the URL is not valid",
		"qdrant://hunter2@vectors.example":    "a key would go to another machine without TLS",
		"qdrant://:hunter2@10.0.0.1:6334":     "a key would go to another machine without TLS",
	} {
		_, err := store.OpenVectorStore(location, store.VectorOptions{})
		wantFault(t, err, drawbridge.InvalidInput, says)
	}
	_, err := store.OpenVectorStore("qdrant://h", store.VectorOptions{Collection: `a"b`})
	wantFault(t, err, drawbridge.InvalidInput, "collection")
}

// TestVectorsAreNotThere has nobody listen: that is said at once, without the password, and then without asking.
func TestVectorsAreNotThere(t *testing.T) {
	const addr = "127.0.0.1:1"
	for _, location := range []string{"qdrant://hunter2@" + addr, "postgres://u:hunter2@" + addr +
		"/db?sslmode=disable"} {
		v := openVectors(t, location, patient)
		for range 2 {
			wantFault(t, keepOne(t.Context(), v), drawbridge.Transient, addr)
			wantFault(t, v.Check(t.Context()), drawbridge.Transient, "refused")
		}
	}
}

// TestVectorsAreSilent has servers that take a connection and say nothing: a search has its answer soon, and the next
// ones at once, from memory.
func TestVectorsAreSilent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	came := make(chan net.Conn, 100)
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			came <- conn
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
		for len(came) > 0 {
			(<-came).Close()
		}
	})
	addr := listener.Addr().String()
	for _, location := range []string{"qdrant://hunter2@" + addr, "postgres://u:hunter2@" + addr +
		"/db?sslmode=disable"} {
		// To wait each time would take longer than this.
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		v := openVectors(t, location, store.VectorOptions{SearchTimeout: 50 * time.Millisecond})
		_, err := v.Nearest(ctx, "m", []float32{1, 0}, 1, []index.TextKey{one})
		wantFault(t, err, drawbridge.Transient, "no answer within 50ms")
		for range 1000 {
			_, err = v.Nearest(ctx, "m", []float32{1, 0}, 1, []index.TextKey{one})
			wantFault(t, err, drawbridge.Transient, "no answer within 50ms")
		}
	}
}

// TestQdrantComesBack stops the server and starts it again: what was kept is there, and nobody had to be told.
func TestQdrantComesBack(t *testing.T) {
	q := storetest.StartQdrant(t, "", nil)
	v := openVectors(t, "qdrant://"+q.Addr, patient)
	if err := keepOne(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	q.Stop()
	wantFault(t, v.Check(t.Context()), drawbridge.Transient, "")
	q.Start()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for v.Check(t.Context()) != nil { // until the connection has been tried again
		<-again.C
	}
	if err := keepOne(t.Context(), v); err != nil {
		t.Error(err)
	}
	// Somebody removes the collections: they are made anew.
	q.RemoveCollections()
	if err := keepOne(t.Context(), v); err != nil {
		t.Error(err)
	}
	if made := q.Collections(); len(made) != 1 || !strings.HasPrefix(made[0], store.DefaultCollection+"_m_") {
		t.Errorf("collections %v", made)
	}
}

func TestQdrantKey(t *testing.T) {
	q := storetest.StartQdrant(t, "hunter2", nil)
	for _, user := range []string{"hunter2@", ":hunter2@"} {
		if err := keepOne(t.Context(), openVectors(t, "qdrant://"+user+q.Addr, patient)); err != nil {
			t.Error(err)
		}
	}
	for _, user := range []string{"", "hunter3@"} {
		v := openVectors(t, "qdrant://"+user+q.Addr, patient)
		wantFault(t, v.Check(t.Context()), drawbridge.AuthFailure, "check the key in the URL")
		wantFault(t, keepOne(t.Context(), v), drawbridge.AuthFailure, "API key")
	}
}

func TestQdrantWithTLS(t *testing.T) {
	server, client := certified(t)
	q := storetest.StartQdrant(t, "hunter2", server)
	if err := keepOne(t.Context(), openVectors(t, "qdrants://hunter2@"+q.Addr,
		store.VectorOptions{SearchTimeout: time.Minute, TLS: client})); err != nil {
		t.Error(err)
	}
	v := openVectors(t, "qdrants://hunter2@"+q.Addr, patient)
	wantFault(t, v.Check(t.Context()), drawbridge.Transient, "certificate")
	if seen := q.CallCount("/qdrant.Collections/CollectionExists"); seen != 0 {
		t.Errorf("%d requests, key and all, to a server that nobody vouches for", seen)
	}
}

// certified makes a certificate for 127.0.0.1, and who trusts it.
func certified(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots}
}

// TestQdrantTakesNoMoreThanItCan keeps more at once than a server takes.
func TestQdrantTakesNoMoreThanItCan(t *testing.T) {
	q := storetest.StartQdrant(t, "", nil)
	v := openVectors(t, "qdrant://"+q.Addr, patient)
	vectors := map[index.TextKey][]float32{}
	wide := make([]float32, 16000)
	wide[0] = 1
	for i := range 400 {
		vectors[index.TextKeyOf(strings.Repeat("x", i))] = wide
	}
	wantFault(t, v.Put(t.Context(), "m", vectors), drawbridge.InvalidInput,
		"keep 24 MiB, of 24: too many vectors for one call")
}

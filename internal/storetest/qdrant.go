package storetest

import (
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"net"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A FakeQdrant is a test server that implements a part of Qdrant's gRPC interface: the requests that package store
// sends. It uses Qdrant's official protocol definitions, and refuses all other requests.
type FakeQdrant struct {
	// Addr is the address of the server.
	Addr string
	// key is the API key that requests must contain; empty means that no key is required.
	key    string
	secure *tls.Config
	work   sync.WaitGroup

	// mu guards the fields below.
	mu          sync.Mutex
	server      *grpc.Server
	door        *connListener
	collections map[string]*qdrantCollection
	// seen is the number of calls of each method.
	seen map[string]int
}

// A qdrantCollection contains the vectors of a collection by UUID. The vectors have length 1.
type qdrantCollection struct {
	size    int
	vectors map[string][]float32
}

// StartQdrant starts a server on a free port of the loopback interface, and stops it when the test ends. If secure
// is not nil, the server uses TLS.
func StartQdrant(t testing.TB, key string, secure *tls.Config) *FakeQdrant {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := &FakeQdrant{Addr: listener.Addr().String(), key: key, secure: secure,
		collections: map[string]*qdrantCollection{}, seen: map[string]int{}}
	q.Start()
	q.work.Go(func() { q.acceptConnections(listener) })
	t.Cleanup(func() {
		listener.Close()
		q.Stop()
		q.work.Wait()
	})
	return q
}

// acceptConnections accepts connections and passes them to the gRPC server. It also accepts them while the gRPC
// server is stopped, and closes them. So the port remains in use, and no other program gets it.
func (q *FakeQdrant) acceptConnections(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		q.mu.Lock()
		door := q.door
		q.mu.Unlock()
		if !door.deliver(conn) {
			conn.Close()
		}
	}
}

// Start starts the gRPC server. After Stop, it starts the gRPC server again with the same collections.
func (q *FakeQdrant) Start() {
	options := []grpc.ServerOption{grpc.UnaryInterceptor(q.countAndAuthorize), grpc.MaxRecvMsgSize(32 << 20)}
	if q.secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(q.secure)))
	}
	server := grpc.NewServer(options...)
	qdrant.RegisterPointsServer(server, &pointsService{q: q})
	qdrant.RegisterCollectionsServer(server, &collectionsService{q: q})
	d := &connListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	q.mu.Lock()
	q.server, q.door = server, d
	q.mu.Unlock()
	q.work.Go(func() { _ = server.Serve(d) }) // Serve returns when the server stops
}

// Stop stops the gRPC server immediately. New connections are closed until Start is called.
func (q *FakeQdrant) Stop() {
	q.mu.Lock()
	server := q.server
	q.mu.Unlock()
	server.Stop()
}

// A connListener is a net.Listener for connections that another listener accepted. The method deliver passes a
// connection to the caller of Accept.
type connListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (d *connListener) deliver(conn net.Conn) bool {
	select {
	case d.conns <- conn:
		return true
	case <-d.closed:
		return false
	}
}

// Accept implements [net.Listener].
func (d *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (d *connListener) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*connListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// RemoveCollections removes all collections, as an administrator might.
func (q *FakeQdrant) RemoveCollections() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.collections = map[string]*qdrantCollection{}
}

// Collections returns the sorted names of the collections.
func (q *FakeQdrant) Collections() (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name := range q.collections {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CallCount returns the number of calls of a method, such as "/qdrant.Points/Query".
func (q *FakeQdrant) CallCount(method string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.seen[method]
}

func (q *FakeQdrant) countAndAuthorize(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	q.mu.Lock()
	q.seen[info.FullMethod]++
	q.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	if q.key != "" && !slices.Equal(md.Get("api-key"), []string{q.key}) {
		return nil, status.Error(codes.Unauthenticated, "Must provide an API key or an Authorization bearer token")
	}
	return handle(ctx, req)
}

// collection returns the collection with a name. The caller must hold q.mu.
func (q *FakeQdrant) collection(name string) (*qdrantCollection, error) {
	if c := q.collections[name]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "Not found: Collection `%s` doesn't exist!", name)
}

type collectionsService struct {
	qdrant.UnimplementedCollectionsServer
	q *FakeQdrant
}

var collectionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`) // names that are valid file names on all systems

func (s *collectionsService) Create(_ context.Context, r *qdrant.CreateCollection) (*qdrant.CollectionOperationResponse,
	error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	params := r.GetVectorsConfig().GetParams()
	if !collectionName.MatchString(r.GetCollectionName()) || params.GetSize() == 0 ||
		params.GetDistance() != qdrant.Distance_Cosine {
		return nil, status.Error(codes.InvalidArgument, "Validation error in body")
	}
	if s.q.collections[r.GetCollectionName()] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Wrong input: Collection `%s` already exists!",
			r.GetCollectionName())
	}
	s.q.collections[r.GetCollectionName()] = &qdrantCollection{size: int(params.GetSize()),
		vectors: map[string][]float32{}}
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}

func (s *collectionsService) Delete(_ context.Context, r *qdrant.DeleteCollection) (*qdrant.CollectionOperationResponse,
	error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	was := s.q.collections[r.GetCollectionName()] != nil
	delete(s.q.collections, r.GetCollectionName())
	return &qdrant.CollectionOperationResponse{Result: was}, nil // deleting a missing collection is not an error
}

func (s *collectionsService) CollectionExists(_ context.Context, r *qdrant.CollectionExistsRequest) (
	*qdrant.CollectionExistsResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return &qdrant.CollectionExistsResponse{Result: &qdrant.CollectionExists{Exists: s.q.collections[r.GetCollectionName()] != nil}}, nil
}

func (s *collectionsService) Get(_ context.Context, r *qdrant.GetCollectionInfoRequest) (
	*qdrant.GetCollectionInfoResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	c, err := s.q.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	params := &qdrant.VectorParams{Size: uint64(c.size), Distance: qdrant.Distance_Cosine}
	return &qdrant.GetCollectionInfoResponse{Result: &qdrant.CollectionInfo{Config: &qdrant.CollectionConfig{
		Params: &qdrant.CollectionParams{VectorsConfig: qdrant.NewVectorsConfig(params)},
	}}}, nil
}

type pointsService struct {
	qdrant.UnimplementedPointsServer
	q *FakeQdrant
}

var pointUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func uuids(ids []*qdrant.PointId) (all []string, err error) {
	for _, id := range ids {
		if !pointUUID.MatchString(id.GetUuid()) {
			return nil, status.Error(codes.InvalidArgument, "Unable to parse UUID: "+id.GetUuid())
		}
		all = append(all, id.GetUuid())
	}
	return all, nil
}

func (s *pointsService) Upsert(_ context.Context, r *qdrant.UpsertPoints) (*qdrant.PointsOperationResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	c, err := s.q.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if !r.GetWait() || r.GetUpdateMode() != qdrant.UpdateMode_InsertOnly {
		return nil, status.Error(codes.Unimplemented, "this stand-in only inserts, and answers when it has")
	}
	vectors := map[string][]float32{}
	for _, p := range r.GetPoints() {
		id, err := uuids([]*qdrant.PointId{p.GetId()})
		if err == nil {
			vectors[id[0]], err = c.unit(p.GetVectors().GetVector().GetDense().GetData())
		}
		if err != nil {
			return nil, err
		}
	}
	for id, v := range vectors {
		if c.vectors[id] == nil {
			c.vectors[id] = v
		}
	}
	return &qdrant.PointsOperationResponse{Result: &qdrant.UpdateResult{Status: qdrant.UpdateStatus_Completed}}, nil
}

// unit returns the vector scaled to length 1, as Qdrant stores it in a collection with cosine distance.
func (c *qdrantCollection) unit(v []float32) ([]float32, error) {
	if len(v) != c.size {
		return nil, status.Errorf(codes.InvalidArgument,
			"Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(v))
	}
	length := math.Sqrt(dotProduct(v, v))
	unit := slices.Clone(v)
	for i := range unit {
		unit[i] = float32(float64(unit[i]) / length)
	}
	return unit, nil
}

func dotProduct(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func (s *pointsService) Get(_ context.Context, r *qdrant.GetPoints) (*qdrant.GetResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	c, err := s.q.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	ids, err := uuids(r.GetIds())
	if err != nil {
		return nil, err
	}
	answer := &qdrant.GetResponse{}
	for _, id := range ids {
		v := c.vectors[id]
		if v == nil {
			continue
		}
		p := &qdrant.RetrievedPoint{Id: qdrant.NewIDUUID(id)}
		if r.GetWithVectors().GetEnable() {
			p.Vectors = &qdrant.VectorsOutput{VectorsOptions: &qdrant.VectorsOutput_Vector{Vector: &qdrant.VectorOutput{
				Vector: &qdrant.VectorOutput_Dense{Dense: &qdrant.DenseVector{Data: v}},
			}}}
		}
		answer.Result = append(answer.Result, p)
	}
	return answer, nil
}

func (s *pointsService) Query(_ context.Context, r *qdrant.QueryPoints) (*qdrant.QueryResponse, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	c, err := s.q.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	must := r.GetFilter().GetMust()
	question := r.GetQuery().GetNearest().GetDense().GetData()
	if len(must) != 1 || !r.GetParams().GetExact() {
		return nil, status.Error(codes.Unimplemented, "this stand-in knows exact searches among points only")
	}
	among, err := uuids(must[0].GetHasId().GetHasId())
	if err == nil {
		question, err = c.unit(question)
	}
	if err != nil {
		return nil, err
	}
	answer := &qdrant.QueryResponse{}
	for _, id := range among {
		if v := c.vectors[id]; v != nil {
			answer.Result = append(answer.Result, &qdrant.ScoredPoint{Id: qdrant.NewIDUUID(id),
				Score: float32(dotProduct(question, v))})
		}
	}
	// Equal scores are in decreasing order of ID, so that clients do not rely on increasing order.
	slices.SortFunc(answer.Result, func(a, b *qdrant.ScoredPoint) int {
		return cmp.Or(cmp.Compare(b.GetScore(), a.GetScore()), cmp.Compare(b.GetId().GetUuid(), a.GetId().GetUuid()))
	})
	answer.Result = answer.Result[:min(int(r.GetLimit()), len(answer.Result))]
	return answer, nil
}

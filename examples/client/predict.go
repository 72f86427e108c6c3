// Sends one Predict call to a model server. docs/clients.md has the command that makes the package pb.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"client/pb"
	"google.golang.org/grpc"
)

func main() {
	// gRPC's clients refuse replies of more than 4 MiB unless told to take them.
	channel, err := grpc.Dial("127.0.0.1:8500", grpc.WithInsecure(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	shape := &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1}, {Size: 784}}}
	request := &pb.PredictRequest{
		ModelSpec: &pb.ModelSpec{Name: "mnist_beginner"},
		Inputs: map[string]*pb.TensorProto{ // the server repeats the last value as needed
			"input": {Dtype: pb.DataType_DT_FLOAT, TensorShape: shape, FloatVal: []float32{0}},
		},
	}
	reply := &pb.PredictResponse{}
	if err := channel.Invoke(ctx, "/tensorflow.serving.PredictionService/Predict", request, reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Outputs["softmax"].FloatVal)
}

"""Java class names -> short names: one literal table per property that names a class.

The names are those of the seeds and of reference s3-sink-connector 1; the credentials providers are those of the AWS
SDK for Java, versions 1 and 2, whose places boto3 knows as well.
"""

from __future__ import annotations

CONNECTORS = {
    "io.confluent.connect.s3.S3SinkConnector": "s3",
}

STORAGES = {"io.confluent.connect.s3.storage.S3Storage": "s3"}

FORMATS = {
    "io.confluent.connect.s3.format.avro.AvroFormat": "avro",
    "io.confluent.connect.s3.format.json.JsonFormat": "json",
    "io.confluent.connect.s3.format.bytearray.ByteArrayFormat": "bytes",
    "io.confluent.connect.s3.format.parquet.ParquetFormat": "parquet",
    "block_gzip": "block_gzip",  # another connector's (penstock.config.foreign)
}

PARTITIONERS = {
    "io.confluent.connect.storage.partitioner.DefaultPartitioner": "default",
    "io.confluent.connect.storage.partitioner.FieldPartitioner": "field",
    "io.confluent.connect.storage.partitioner.TimeBasedPartitioner": "time",
    "io.confluent.connect.storage.partitioner.DailyPartitioner": "daily",
    "io.confluent.connect.storage.partitioner.HourlyPartitioner": "hourly",
    "com.canelmas.kafka.connect.FieldAndTimeBasedPartitioner": "fieldandtime",
}

EXTRACTORS = {
    "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$WallclockTimestampExtractor": "wallclock",
    "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordTimestampExtractor": "record",
    "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordFieldTimestampExtractor": "recordfield",
}

CONVERTERS = {
    "io.confluent.connect.avro.AvroConverter": "avro",
    "org.apache.kafka.connect.json.JsonConverter": "json",
    "org.apache.kafka.connect.storage.StringConverter": "string",
    "org.apache.kafka.connect.converters.ByteArrayConverter": "bytes",
    "io.confluent.connect.protobuf.ProtobufConverter": "protobuf",
    "io.confluent.connect.json.JsonSchemaConverter": "json_schema",
    "com.spredfast.kafka.connect.s3.AlreadyBytesConverter": "bytes",
}

HEADER_CONVERTERS = {"org.apache.kafka.connect.storage.SimpleHeaderConverter": "simple", **CONVERTERS}

SYSTEM_PROPERTIES_PROVIDER = "java_system_properties"

CREDENTIALS = {
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider": "default",
    "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": "default",
    "com.amazon.auth.DefaultAWSCredentialsProviderChain": "default",  # as seed 001 misspells it
    "software.amazon.awssdk.auth.credentials.StaticCredentialsProvider": "static",
    "com.amazonaws.auth.AWSStaticCredentialsProvider": "static",
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider": "environment",
    "com.amazonaws.auth.EnvironmentVariableCredentialsProvider": "environment",
    "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider": "profile",
    "com.amazonaws.auth.profile.ProfileCredentialsProvider": "profile",
    "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider": "container",
    "com.amazonaws.auth.ContainerCredentialsProvider": "container",
    "com.amazonaws.auth.EC2ContainerCredentialsProviderWrapper": "container_or_instance",
    "software.amazon.awssdk.auth.credentials.InstanceProfileCredentialsProvider": "instance_profile",
    "com.amazonaws.auth.InstanceProfileCredentialsProvider": "instance_profile",
    "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider": "assume_role",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider": "web_identity",
    "com.amazonaws.auth.WebIdentityTokenCredentialsProvider": "web_identity",
    "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider": SYSTEM_PROPERTIES_PROVIDER,
    "com.amazonaws.auth.SystemPropertiesCredentialsProvider": SYSTEM_PROPERTIES_PROVIDER,
}
